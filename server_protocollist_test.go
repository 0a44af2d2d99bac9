package anser_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
)

// Observers of requests learn about a list of methods as about a call: Reply follows each Request
// that they allowed, and no other.
func TestListOfMethodsIsObserved(t *testing.T) {
	var open, refusals int
	full := false
	s := foreignServer(t, anser.Observe(anser.Observer{
		Request: func(context.Context, anser.MessageInfo) error {
			if full {
				refusals++
				return errors.New("full")
			}
			open++
			return nil
		},
		Reply: func(context.Context, anser.MessageInfo) { open-- },
	}))
	f := openForeign(t, s, nil)
	for _, full = range []bool{false, true} {
		if _, fault := f.ListMethods(); (fault != nil) != full {
			t.Errorf("refused %t: %v", full, fault)
		}
		if open != 0 {
			t.Errorf("refused %t: %d more requests than replies", full, open)
		}
	}
	if refused := s.Stats().Refused; refusals != 1 || refused != 1 {
		t.Errorf("%d refused, %d counted, want 1", refusals, refused)
	}
}

// An observer that panics on a list of methods refuses it, and the log says why.
func TestObserverPanicsOnListOfMethods(t *testing.T) {
	var log syncBuffer
	s := foreignServer(t, anser.Logger(slog.New(slog.NewTextHandler(&log, nil))), anser.Observe(anser.Observer{
		Request: func(context.Context, anser.MessageInfo) error { panic("why it failed") },
	}))
	f := openForeign(t, s, nil)
	_, fault := f.ListMethods()
	if fault == nil || fault.Code != anser.Internal || fault.Outcome != anser.Refused {
		t.Errorf("the list has the error %#v", fault)
	}
	if panics := s.Stats().Panics; panics != 1 || !strings.Contains(log.String(), "why it failed") {
		t.Errorf("%d panics are counted, and the log has %q", panics, log.String())
	}
}
