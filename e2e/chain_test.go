package e2e_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// parcel is what travels down a chain.
type parcel struct{ ID int }

// startTier serves Tier.Do on a socket until the test ends, and returns its address.
func startTier(t *testing.T, do func(ctx context.Context, in *parcel) (*parcel, error)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(anser.Logger(slog.New(slog.DiscardHandler)))
	anser.Handle(s, "Tier.Do", do, anser.Idempotent(), anser.Concurrent())
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// eager is a client that tries again whatever it may.
func eager(t *testing.T, address string) *anser.Client {
	t.Helper()
	c, err := anser.Dial(address, anser.Logger(slog.New(slog.DiscardHandler)), anser.Idempotent(), anser.Attempts(5),
		anser.RetryOn(anser.Aborted, anser.Unavailable, anser.ResourceExhausted, anser.DeadlineExceeded, anser.Internal))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// When the bottom of a chain of three tiers fails completely, and every tier tries again as
// eagerly as it can, the bottom gets at most a quarter more calls than it is offered. With five
// attempts of each caller and no budget it would be 125 times as many, and with budgets alone 1.2
// × 1.2 × 1.2.
func TestRetriesOfAChain(t *testing.T) {
	const calls, callers = 4000, 64
	for name, broken := range map[string]error{
		"failing":    anser.Errorf(anser.Aborted, "broken"),
		"overloaded": anser.Refuse(anser.ResourceExhausted, "overloaded"),
	} {
		t.Run(name, func(t *testing.T) {
			var seen atomic.Int64
			bottom := eager(t, startTier(t, func(context.Context, *parcel) (*parcel, error) {
				seen.Add(1)
				return nil, broken
			}))
			middle := eager(t, startTier(t, func(ctx context.Context, in *parcel) (*parcel, error) {
				return anser.Call[parcel](ctx, bottom, "Tier.Do", in)
			}))
			top := eager(t, startTier(t, func(ctx context.Context, in *parcel) (*parcel, error) {
				return anser.Call[parcel](ctx, middle, "Tier.Do", in)
			}))
			began := time.Now()
			var offered, failed atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for offered.Add(1) <= calls {
						if _, err := anser.Call[parcel](context.Background(), top, "Tier.Do", &parcel{}); err != nil {
							failed.Add(1)
						}
					}
				})
			}
			wg.Wait()
			// The budget's 10 calls a second are the only part that depends on how fast the
			// machine is: for 20 seconds they are within the quarter.
			limit := max(1.25*calls, 1.2*calls+10+10*time.Since(began).Seconds())
			t.Logf("%d calls reached the bottom for %d that were offered", seen.Load(), calls)
			if n := float64(seen.Load()); n > limit {
				t.Errorf("%v calls reached the bottom for %d that were offered, want %v at most", n, calls, limit)
			}
			if seen.Load() < 1.1*calls {
				t.Errorf("%d calls reached the bottom for %d that were offered: nothing was tried again", seen.Load(), calls)
			}
			if failed.Load() != calls {
				t.Errorf("%d of %d calls failed", failed.Load(), calls)
			}
		})
	}
}
