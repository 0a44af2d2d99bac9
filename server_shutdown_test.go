package anser_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/registry"
)

// overtime is how long Shutdown may take when its context is done.
const overtime = 100 * time.Millisecond

// The context of Shutdown limits how long it waits: for calls whose callers wait, and for
// handlers whose callers have gone, whether they respect their contexts or not.
func TestShutdownIsBoundByItsContext(t *testing.T) {
	for name, mode := range map[string]anser.HandleOption{"inline": anser.Inline(), "concurrent": anser.Concurrent()} {
		for _, gone := range []bool{false, true} {
			for _, bound := range []time.Duration{0, 100 * time.Millisecond, time.Second, 3 * time.Second} {
				for _, lasts := range []time.Duration{time.Hour, 2 * time.Second} {
					bubble(t, func(t *testing.T, network *ansertest.Network) {
						d, err := shutdownBeside(t, network, mode, gone, bound, lasts)
						if lasts < bound {
							if err != nil {
								t.Errorf("%s, callers gone %v, %v for calls of %v: %v", name, gone, bound, lasts, err)
							}
							if d >= bound {
								t.Errorf("%s, callers gone %v: %v for calls of %v", name, gone, d, lasts)
							}
							return
						}
						if !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("%s, callers gone %v, %v for calls of %v: %v", name, gone, bound, lasts, err)
						}
						if d < bound || d > bound+overtime {
							t.Errorf("%s, callers gone %v: Shutdown took %v, want %v and at most %v more", name, gone, d, bound, overtime)
						}
					})
				}
			}
		}
	}
}

// shutdownBeside shuts a server down within bound while a handler runs that ignores its context
// and takes lasts, and returns how long that took. It waits for the handler.
func shutdownBeside(t *testing.T, network *ansertest.Network, mode anser.HandleOption, gone bool, bound, lasts time.Duration) (time.Duration, error) {
	running, left := make(chan struct{}), make(chan struct{})
	s := anser.NewServer(silent)
	anser.Handle(s, "Echo.Stubborn", func(_ context.Context, in *[]byte) (*[]byte, error) {
		defer close(left)
		close(running)
		time.Sleep(lasts)
		return in, nil
	}, mode)
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Timeout(0))
	asking, leave := context.WithCancel(t.Context())
	defer leave()
	reply := anser.Go[[]byte](asking, c, "Echo.Stubborn", text(""))
	<-running
	if gone {
		leave()
		reply.Wait()
		synctest.Wait()
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	began := time.Now()
	err := s.Shutdown(ctx)
	d := time.Since(began)
	<-left
	synctest.Wait()
	return d, err
}

// Handlers that respect their contexts end before Shutdown returns, which has sent CLOSE by then.
func TestShutdownOfObedientHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			<-ctx.Done()
			return in, nil
		}})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Timeout(0))
		reply := anser.Go[[]byte](t.Context(), c, "Echo.Wait", text(""))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := s.Shutdown(ctx)
		if want := "shutdown: calls were still in flight: context deadline exceeded"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		_, err = reply.Wait()
		wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
	})
}

// A registry that does not answer takes part of the time of Shutdown, and the rest is left for
// calls in flight.
func TestShutdownWithADeadRegistry(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Slow": func(_ context.Context, in *[]byte) (*[]byte, error) {
			time.Sleep(2 * time.Second)
			return in, nil
		}}, anser.Announce(stuck{}, registry.Instance{Service: "echo"}))
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Timeout(0))
		reply := anser.Go[[]byte](t.Context(), c, "Echo.Slow", text("done"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 2500*time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if out, err := reply.Wait(); err != nil || string(*out) != "done" {
			t.Error(err)
		}
	})
}
