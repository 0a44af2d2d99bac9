package anser_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

type key struct{}

// handle runs one call of f and returns its error, on a goroutine of each kind.
func handle(t *testing.T, f func(ctx context.Context), call func(t *testing.T, c *anser.Client)) {
	t.Helper()
	for name, opt := range map[string]anser.HandleOption{"inline": anser.Inline(), "concurrent": anser.Concurrent()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				s := anser.NewServer(silent)
				anser.Handle(s, "Ctx.Use", func(ctx context.Context, in *[]byte) (*[]byte, error) {
					f(ctx)
					return in, nil
				}, opt)
				run(t, s, network.Listen("a:1"))
				call(t, dial(t, "a:1", anser.Dialer(network.Dial)))
				synctest.Wait()
			})
		})
	}
}

// once makes one call that must succeed.
func once(opts ...anser.CallOption) func(t *testing.T, c *anser.Client) {
	return func(t *testing.T, c *anser.Client) {
		if _, err := call(context.Background(), c, "Ctx.Use", "", opts...); err != nil {
			t.Error(err)
		}
	}
}

func TestContextOfAHandler(t *testing.T) {
	handle(t, func(ctx context.Context) {
		d, ok := ctx.Deadline()
		if left := time.Until(d); !ok || left != 10*time.Second {
			t.Errorf("%v left", left)
		}
		if ctx.Err() != nil || ctx.Value(key{}) != nil || context.Cause(ctx) != nil {
			t.Error(ctx.Err(), ctx.Value(key{}))
		}
		if first, second := ctx.Done(), ctx.Done(); first != second {
			t.Error("Done changes")
		}
		select {
		case <-ctx.Done():
			t.Error("done from the start")
		default:
		}
	}, once())
	handle(t, func(ctx context.Context) {
		if d, ok := ctx.Deadline(); ok {
			t.Error("a deadline of", d)
		}
	}, once(anser.Timeout(0)))
}

// The handler's context has ended after the handler returned, for goroutines that it left behind.
func TestContextEndsWithTheHandler(t *testing.T) {
	var before, after, derived context.Context
	handle(t, func(ctx context.Context) {
		before, after = ctx, ctx
		_ = before.Done()
		derived = context.WithValue(ctx, key{}, 1)
		context.AfterFunc(derived, func() {})
	}, func(t *testing.T, c *anser.Client) {
		once()(t, c)
		synctest.Wait()
		for _, ctx := range []context.Context{before, after, derived} {
			<-ctx.Done()
			if ctx.Err() != context.Canceled {
				t.Error(ctx.Err())
			}
		}
	})
	handle(t, func(ctx context.Context) { after = ctx }, func(t *testing.T, c *anser.Client) {
		once()(t, c) // Done was not called while the handler ran
		synctest.Wait()
		if after.Err() != context.Canceled {
			t.Error(after.Err())
		}
		<-after.Done()
	})
}

// The deadline ends the context, whether the handler waits for Done, derives a context from it,
// or calls Err.
func TestContextDeadline(t *testing.T) {
	late := func(wait func(ctx context.Context)) func(ctx context.Context) {
		return func(ctx context.Context) {
			began := time.Now()
			wait(ctx)
			if d := time.Since(began); d != time.Second {
				t.Errorf("ended after %v", d)
			}
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Error(ctx.Err())
			}
			time.Sleep(time.Millisecond) // the caller's own deadline comes first
		}
	}
	expire := func(t *testing.T, c *anser.Client) {
		_, err := call(context.Background(), c, "Ctx.Use", "", anser.Timeout(time.Second))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Second)
	}
	handle(t, late(func(ctx context.Context) { <-ctx.Done() }), expire)
	handle(t, late(func(ctx context.Context) {
		derived, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		<-derived.Done()
	}), expire)
	handle(t, late(func(ctx context.Context) {
		done := make(chan struct{})
		context.AfterFunc(ctx, func() { close(done) })
		<-done
	}), expire)
	handle(t, late(func(ctx context.Context) { time.Sleep(time.Second) }), expire)
}

// Losing the connection ends the contexts of its calls.
func TestContextEndsWithTheConnection(t *testing.T) {
	ended := make(chan error, 1)
	handle(t, func(ctx context.Context) {
		<-ctx.Done()
		ended <- ctx.Err()
	}, func(t *testing.T, c *anser.Client) {
		reply := anser.Go[[]byte](context.Background(), c, "Ctx.Use", text(""))
		time.Sleep(time.Second)
		began := time.Now()
		c.Close()
		if err := <-ended; err != context.Canceled {
			t.Error(err)
		}
		if d := time.Since(began); d > 10*time.Millisecond {
			t.Errorf("the handler learned it after %v", d)
		}
		reply.Wait()
	})
}

func TestContextAfterFunc(t *testing.T) {
	handle(t, func(ctx context.Context) {
		ran := make(chan int, 4)
		stopFirst := context.AfterFunc(ctx, func() { ran <- 1 })
		context.AfterFunc(ctx, func() { ran <- 2 })
		context.AfterFunc(ctx, func() { ran <- 2 })
		if !stopFirst() || stopFirst() {
			t.Error("stop does not stop, or stops twice")
		}
		<-ctx.Done()
		stopLate := context.AfterFunc(ctx, func() { ran <- 3 })
		sum := <-ran + <-ran + <-ran
		if sum != 7 || stopLate() {
			t.Error(sum)
		}
	}, func(t *testing.T, c *anser.Client) {
		_, err := call(context.Background(), c, "Ctx.Use", "", anser.Timeout(time.Second))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Everything at once, for the race detector.
func TestContextConcurrency(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	anser.Handle(s, "Ctx.Use", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				child, cancel := context.WithCancel(ctx)
				defer cancel()
				stop := context.AfterFunc(child, func() {})
				_, _ = ctx.Deadline()
				_ = ctx.Err()
				anser.SetTrailer(ctx, "k", "v")
				anser.MetadataFrom(child)
				select {
				case <-ctx.Done():
				default:
				}
				stop()
			})
		}
		go func() { // outlives the handler
			<-ctx.Done()
			_ = ctx.Err()
			anser.SetTrailer(ctx, "late", "v")
			anser.MetadataFrom(ctx)
			anser.PeerFrom(ctx)
		}()
		if len(*in) > 0 {
			wg.Wait()
		}
		return in, nil
	})
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				ctx, cancel := context.WithTimeout(anser.WithMetadata(context.Background(), anser.Metadata{"a": "b"}), time.Duration(i)*50*time.Microsecond+50*time.Microsecond)
				call(ctx, c, "Ctx.Use", []string{"", "wait"}[i%2])
				cancel()
			}
		})
	}
	wg.Wait()
	eventually(t, "all calls have ended", func() bool { return s.Stats().InFlight == 0 })
}
