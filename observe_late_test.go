package anser_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// errGivenUp is what an interceptor returns that does not wait for next.
var errGivenUp = errors.New("the interceptor does not wait")

// belated is an interceptor that returns before it calls next, which is against the rules.
type belated struct {
	mu    sync.Mutex
	calls []func() error // calls of next
}

func (b *belated) intercept(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) error {
		if trace, _ := anser.TraceFrom(ctx); trace.SpanID[0] != 0 { // a call of the test that must work
			return next(ctx, inv)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		ctx = context.WithoutCancel(ctx)
		b.calls = append(b.calls, func() error { return next(ctx, inv) })
		return errGivenUp
	}
}

// take returns what was not called yet.
func (b *belated) take() (calls []func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls, b.calls = b.calls, nil
	return calls
}

// A call that an interceptor goes on with after it has returned has the trace context that was
// chosen for it, and touches no record of another call.
func TestTraceOfBelatedCalls(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var mu sync.Mutex
		var got []byte // span ids that the server has seen
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Say", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			trace, _ := anser.TraceFrom(ctx)
			mu.Lock()
			defer mu.Unlock()
			got = append(got, trace.SpanID[0])
			return in, nil
		})
		run(t, s, network.Listen("a:1"))
		all, late := new(spans), new(belated)
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Observe(all.observer()), anser.Intercept(late.intercept))
		const many = 20
		for range many {
			if _, err := anser.Call[[]byte](t.Context(), c, "Echo.Say", text("x")); !errors.Is(err, errGivenUp) {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		calls := late.take()
		wg.Go(func() { // calls that use the records meanwhile
			ctx := anser.WithTrace(t.Context(), anser.Trace{TraceID: [16]byte{99}, SpanID: [8]byte{200}})
			for range 4 * many {
				if _, err := anser.Call[[]byte](ctx, c, "Echo.Say", text("x")); err != nil {
					t.Error(err)
				}
			}
		})
		for _, next := range calls {
			if err := next(); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		seen := make(map[byte]int)
		mu.Lock()
		defer mu.Unlock()
		for _, id := range got {
			seen[id]++
		}
		for id := range byte(5 * many) {
			if seen[id+1] != 1 {
				t.Errorf("the span %d came %d times", id+1, seen[id+1])
			}
		}
	})
}

// A stream that an interceptor opens after it has returned is refused, or ended if the interceptor
// returned meanwhile. The observers learn of one end for each stream.
func TestBelatedStreams(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent)
		anser.HandleStream(s, "Echo.Stream", func(ctx context.Context, _ *anser.Stream[[]byte, []byte]) error {
			<-ctx.Done()
			return nil
		})
		run(t, s, network.Listen("a:1"))
		all, late := new(spans), new(belated)
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Observe(all.observer()), anser.Intercept(late.intercept))
		if _, err := anser.Open[[]byte, []byte](t.Context(), c, "Echo.Stream"); !errors.Is(err, errGivenUp) {
			t.Fatal(err)
		}
		if err := late.take()[0](); anser.CodeOf(err) != anser.FailedPrecondition {
			t.Errorf("got %v", err)
		}
		all.expect(t, "a stream that is opened late", [2]byte{1, 0})

		// The dialer waits, so that the interceptor returns in the middle of the opening.
		var once sync.Once
		var ended sync.WaitGroup
		waits, release := make(chan struct{}), make(chan struct{})
		held := anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			once.Do(func() { close(waits) })
			<-release
			return network.Dial(ctx, kind, address)
		})
		opened := make(chan error, 1)
		c = dial(t, "a:1", held, anser.Observe(all.observer()), anser.Intercept(func(next anser.Func) anser.Func {
			return func(ctx context.Context, inv *anser.Invocation) error {
				ended.Go(func() { opened <- next(context.WithoutCancel(ctx), inv) })
				<-waits
				return errGivenUp
			}
		}))
		if _, err := anser.Open[[]byte, []byte](t.Context(), c, "Echo.Stream"); !errors.Is(err, errGivenUp) {
			t.Fatal(err)
		}
		close(release)
		if err := <-opened; err == nil {
			t.Error("a stream was opened for nobody")
		}
		ended.Wait()
		all.expect(t, "a stream whose opening was given up", [2]byte{1, 0})
		synctest.Wait()
		if list, n := c.Streams(10); n != 0 {
			t.Errorf("streams are left open: %+v", list)
		}
	})
}
