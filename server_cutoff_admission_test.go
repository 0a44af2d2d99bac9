package anser_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// No call that the policy does not allow goes on, even if the policy changes while calls are
// admitted.
func TestPolicyChangesWhileCallsAreAdmitted(t *testing.T) {
	for mode, opts := range map[string][]anser.HandleOption{"worker": {anser.Concurrent()}, "reader": nil} {
		t.Run(mode, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				p, h := new(policy), newHeldCalls()
				s := anser.NewServer(silent, anser.Authenticate(new(door)), anser.Authorize(p))
				anser.Handle(s, "Held.Call", h.unary, opts...)
				anser.HandleStream(s, "Held.Stream", h.stream)
				run(t, s, network.Listen("a:1"))
				c := dial(t, "a:1", inMemory(network, showing("ann"))...)
				for i := range 100 {
					p.set("ann Held.Call", "ann Held.Stream")
					if i%2 == 0 {
						time.Sleep(cutBound) // the latest version seen allows the calls
					}
					var wg sync.WaitGroup
					for range 4 {
						wg.Go(func() {
							_, err := call(context.Background(), c, "Held.Call", "", anser.Timeout(time.Hour))
							if anser.CodeOf(err) != anser.PermissionDenied {
								t.Error(err)
							}
						})
						wg.Go(func() {
							st, err := anser.Open[[]byte, []byte](context.Background(), c, "Held.Stream")
							if err == nil {
								_, err = st.Recv()
							}
							if anser.CodeOf(err) != anser.PermissionDenied {
								t.Error(err)
							}
						})
					}
					wg.Go(func() { p.set() })
					wg.Wait()
				}
				for s.Stats().InFlight > 0 {
					time.Sleep(time.Millisecond)
				}
			})
		})
	}
}

// slowPolicy decides by outdated rules: its first decision takes three seconds.
type slowPolicy struct {
	policy
	slow atomic.Bool
}

func (p *slowPolicy) Allows(id *anser.Identity, method string) bool {
	ok := p.policy.Allows(id, method)
	if p.slow.CompareAndSwap(true, false) {
		p.set()
		time.Sleep(3 * time.Second)
	}
	return ok
}

// A call ends if it was admitted by rules that change, and the change is applied before the call
// has been added to the open ones.
func TestAdmittedByRulesThatHaveChanged(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		p := new(slowPolicy)
		_, h := cutOff(t, network, anser.Authenticate(new(door)), anser.Authorize(p))
		c := dial(t, "a:1", inMemory(network, showing("ann"))...)
		for range 2 {
			p.set("ann Held.Call", "ann Held.Stream")
			p.slow.Store(true)
			st, err := anser.Open[[]byte, []byte](context.Background(), c, "Held.Stream", anser.Timeout(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			_, err = st.Recv()
			wantFault(t, err, anser.PermissionDenied, anser.OutcomeUnknown)
			p.set("ann Held.Call", "ann Held.Stream")
			p.slow.Store(true)
			_, err = call(context.Background(), c, "Held.Call", "", anser.Timeout(time.Minute))
			wantFault(t, err, anser.PermissionDenied, anser.OutcomeUnknown)
		}
		for len(h.began) > len(h.ended) {
			time.Sleep(time.Millisecond)
		}
	})
}

// A handler that runs on the reader goroutine while a change is applied is ended once it no
// longer runs there.
func TestPolicyChangesBeforeAHandoff(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		p := new(policy)
		s := anser.NewServer(silent, anser.Authenticate(new(door)), anser.Authorize(p))
		anser.Handle(s, "Held.Call", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			p.set()
			<-ctx.Done()
			return in, nil
		}, anser.Inline())
		began := time.Now() // of the ticks
		run(t, s, network.Listen("a:1"))
		c := dial(t, "a:1", inMemory(network, showing("ann"))...)
		for before := range 8 * time.Duration(4) {
			p.set("ann Held.Call")
			time.Sleep(cutBound)
			time.Sleep(time.Second - time.Since(began)%time.Second - before*time.Millisecond/4)
			_, err := call(context.Background(), c, "Held.Call", "", anser.Timeout(time.Minute))
			wantFault(t, err, anser.PermissionDenied, anser.OutcomeUnknown)
		}
	})
}
