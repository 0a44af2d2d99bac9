//go:build linux || darwin

package anser_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
)

// Two servers listen on one port, as two processes would, and when one ends the other gets the
// calls.
func TestReusePort(t *testing.T) {
	first := anser.NewServer(silent, anser.ReusePort())
	anser.Handle(first, "Echo.Say", echo)
	l, err := first.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	run(t, first, l)
	address := l.Addr().String()
	if _, err := net.Listen("tcp", address); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("without the option: %v", err)
	}
	second := anser.NewServer(silent, anser.ReusePort())
	anser.Handle(second, "Echo.Say", echo)
	l2, err := second.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	run(t, second, l2)
	c := dial(t, address)
	say := func() {
		t.Helper()
		if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
			t.Fatal(out, err)
		}
	}
	say()
	if err := first.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := second.Stats().Methods["Echo.Say"].Calls
	say()
	if n := second.Stats().Methods["Echo.Say"].Calls; n != before+1 {
		t.Errorf("the server that is left has %d calls, before %d", n, before)
	}
}
