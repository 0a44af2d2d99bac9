package loglimit_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/loglimit"
	"github.com/anser-rpc/anser/internal/mono"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSeldom(t *testing.T) {
	var s loglimit.Seldom
	if n := s.Note(1); n != 1 {
		t.Errorf("the first event logs %d", n)
	}
	for range 3 {
		if n := s.Note(2); n != 0 {
			t.Errorf("an event soon after logs %d", n)
		}
	}
	if n := s.Note(mono.Time(1).Add(2 * 60e9)); n != 4 {
		t.Errorf("an event much later logs %d, want 4", n)
	}
}
