package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/anser-rpc/anser"
)

// Handlers call their own server through a client of their own, three deep, and wait for it.
func TestHandlerCallsItsServer(t *testing.T) {
	p := startInstances(t, 1, config{Ledger: string(newLedger(t))})[0]
	c := dial(t, p.config.Address)
	for _, m := range []anser.Method[Entry, Entry]{callBack, callBackInline} {
		t.Run(string(m), func(t *testing.T) {
			var wg sync.WaitGroup
			for i := range 64 {
				wg.Go(func() {
					for n := range 5 {
						in := &Entry{ID: fmt.Sprintf("%d-%d", i, n), Depth: 3}
						out, err := m.Call(t.Context(), c, in, anser.Timeout(bound))
						if err != nil || out.ID != in.ID {
							t.Errorf("call %s: %v, %v", in.ID, out, err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
	p.drain()
}

// The first SIGTERM lets a call finish, the second one does not.
func TestSecondSignal(t *testing.T) {
	p := startInstances(t, 1, config{Ledger: string(newLedger(t))})[0]
	c := dial(t, p.config.Address)
	ctx := context.Background()
	if _, err := appendEntry.Call(ctx, c, &Entry{ID: "first"}); err != nil {
		t.Fatal(err)
	}
	call := appendEntry.Go(ctx, c, &Entry{ID: "long", Hold: 10 * bound}, anser.Timeout(10*bound))
	book := ledger(p.config.Ledger)
	eventually(t, "the call runs", func() bool { return book.read(t)["long"] > 0 })
	p.signal(syscall.SIGTERM)
	eventually(t, "the server accepts no connection", func() bool {
		nc, err := net.Dial("tcp", p.config.Address)
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
	select {
	case <-p.exited:
		t.Fatalf("the server did not wait for its call: %v", p.err)
	default:
	}
	p.signal(syscall.SIGTERM)
	err := p.wait() // a tenth of the time that the call would take
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the server ended with %v, want by the signal", err)
	}
	if _, err := call.Wait(); anser.OutcomeOf(err) != anser.OutcomeUnknown {
		t.Errorf("the call ended with %v, want the outcome unknown", err)
	}
}
