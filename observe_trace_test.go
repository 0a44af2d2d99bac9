package anser_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// spans gives every call an id of its own, and remembers whose child it is.
type spans struct {
	mu    sync.Mutex
	last  byte
	calls []anser.CallInfo // that have ended
}

func (s *spans) observer() anser.Observer {
	return anser.Observer{
		Trace: func(_ context.Context, _ anser.CallKind, t *anser.TraceChoice) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.last++
			t.Own = anser.Trace{TraceID: [16]byte{99}, SpanID: [8]byte{s.last}, Flags: t.Parent.Flags}
		},
		CallEnded: func(_ context.Context, c *anser.CallInfo) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.calls = append(s.calls, *c)
		},
	}
}

// expect compares the calls and their parents: 2 1 is the call 2, made by the call 1.
func (s *spans) expect(t *testing.T, kind string, want ...[2]byte) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var got [][2]byte
	for _, c := range s.calls {
		got = append(got, [2]byte{c.Trace.SpanID[0], c.Parent.SpanID[0]})
	}
	if len(got) != len(want) {
		t.Fatalf("%s: calls %v, want %v", kind, got, want)
	}
	for _, w := range want {
		found := false
		for _, g := range got {
			found = found || g == w
		}
		if !found {
			t.Errorf("%s: calls %v, want %v", kind, got, want)
		}
	}
	s.calls, s.last = nil, 0
}

// The trace context that an observer chooses goes with the call, without the context of the
// caller: a client, a server that forwards calls, its client, a server with a handler that makes a
// call, and the server of that.
func TestTraceOfObserver(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		all := new(spans)
		observe := anser.Observe(all.observer())
		last := anser.NewServer(silent, observe)
		anser.Handle(last, "Echo.Last", func(context.Context, *anser.None) (*anser.None, error) { return new(anser.None), nil })
		run(t, last, network.Listen("last:1"))
		toLast := dial(t, "last:1", anser.Dialer(network.Dial), observe)
		back := anser.NewServer(silent, observe)
		anser.Handle(back, "Echo.Say", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			_, err := anser.Call[anser.None](ctx, toLast, "Echo.Last", new(anser.None))
			return in, err
		})
		anser.HandleStream(back, "Echo.Stream", func(ctx context.Context, st *anser.Stream[[]byte, []byte]) error {
			_, err := anser.Call[anser.None](ctx, toLast, "Echo.Last", new(anser.None))
			return err
		})
		run(t, back, network.Listen("back:1"))
		toBack := dial(t, "back:1", anser.Dialer(network.Dial), observe)
		front := anser.NewServer(silent, observe, anser.Forward(func(_ context.Context, call *anser.ForwardCall) (*anser.Client, string, error) {
			return toBack, call.Method, nil
		}))
		run(t, front, network.Listen("front:1"))

		// The first server has no memory for a trace context if the request has none.
		chain := [][2]byte{{1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}, {6, 5}}
		ctx := context.Background()
		plain := dial(t, "front:1", anser.Dialer(network.Dial), observe)
		passes := func(next anser.Func) anser.Func { return next }
		through := dial(t, "front:1", anser.Dialer(network.Dial), observe, anser.Intercept(passes))
		for name, c := range map[string]*anser.Client{"": plain, ", through an interceptor": through} {
			if _, err := anser.Call[[]byte](ctx, c, "Echo.Say", text("x")); err != nil {
				t.Fatal(err)
			}
			all.expect(t, "call"+name, chain...)
			if _, err := anser.Go[[]byte](ctx, c, "Echo.Say", text("x")).Wait(); err != nil {
				t.Fatal(err)
			}
			all.expect(t, "future"+name, chain...)
			if err := anser.Send(ctx, c, "Echo.Say", text("x")); err != nil {
				t.Fatal(err)
			}
			all.expect(t, "oneway"+name, chain...)
			st, err := anser.Open[[]byte, []byte](ctx, c, "Echo.Stream")
			if err != nil {
				t.Fatal(err)
			}
			st.CloseSend()
			st.Recv()
			all.expect(t, "stream"+name, chain...)
		}

		caller := anser.Trace{TraceID: [16]byte{99}, SpanID: [8]byte{77}}
		anser.Call[[]byte](anser.WithTrace(ctx, caller), plain, "Echo.Say", text("x"))
		all.expect(t, "call with a trace", [2]byte{1, 77}, [2]byte{2, 1}, [2]byte{3, 2}, [2]byte{4, 3}, [2]byte{5, 4}, [2]byte{6, 5})

		other := dial(t, "front:1", anser.Dialer(network.Dial), observe, anser.Intercept(func(next anser.Func) anser.Func {
			return func(ctx context.Context, inv *anser.Invocation) error { return next(anser.WithTrace(ctx, caller), inv) }
		}))
		anser.Call[[]byte](ctx, other, "Echo.Say", text("x"))
		all.expect(t, "interceptor that traces", [2]byte{1, 0}, [2]byte{2, 77}, [2]byte{3, 2}, [2]byte{4, 3}, [2]byte{5, 4}, [2]byte{6, 5})
	})
}

// The attempts of a call are known when it has ended, also if it succeeded.
func TestAttemptsOfObserver(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		all := new(spans)
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Say", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			if anser.AttemptFrom(ctx) < 2 {
				return nil, anser.Aborted
			}
			return in, nil
		})
		run(t, s, network.Listen("a:1"))
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Observe(all.observer()), anser.Idempotent(), anser.RetryOn(anser.Aborted))
		if _, err := call(t.Context(), c, "Echo.Say", "x"); err != nil {
			t.Fatal(err)
		}
		if len(all.calls) != 1 || len(all.calls[0].Attempts) != 2 || all.calls[0].Attempt != 2 {
			t.Fatalf("%+v", all.calls)
		}
		for _, a := range all.calls[0].Attempts {
			if a.Code != anser.Aborted || a.Outcome != anser.Executed || a.Address != "a:1" || a.Pause <= 0 {
				t.Errorf("attempt %+v", a)
			}
		}
	})
}

// An observer that chooses trace contexts costs a call no memory, at either side.
func TestAllocationsOfTraceOfObserver(t *testing.T) {
	network := new(ansertest.Network)
	per := func(opts ...anser.Option) float64 {
		server, client := []anser.ServerOption{silent}, []anser.DialOption{silent, anser.Dialer(network.Dial), anser.Conns(1)}
		for _, o := range opts {
			server, client = append(server, o), append(client, o)
		}
		s := anser.NewServer(server...)
		anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
		run(t, s, network.Listen("a:1"))
		defer s.Close()
		c, err := anser.Dial("a:1", client...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		in := text("x")
		return allocs(t, func() {
			if _, err := anser.Call[[]byte](context.Background(), c, "Echo.Say", in); err != nil {
				t.Fatal(err)
			}
		})
	}
	observer := anser.Observe(anser.Observer{
		Trace: func(_ context.Context, _ anser.CallKind, t *anser.TraceChoice) {
			t.Own = anser.Trace{TraceID: [16]byte{1}, SpanID: [8]byte{1}}
		},
		CallEnded: func(context.Context, *anser.CallInfo) {},
	})
	var with, without float64
	dropped := 0.0
	if raced { // pools drop a quarter of their objects, and the observer takes one more on each side
		dropped = 1
	}
	for range 10 { // a pool that a collection empties adds some to a round
		if with, without = per(observer), per(); with <= without+dropped {
			return
		}
	}
	t.Errorf("%v allocations a call with the observer, %v without", with, without)
}
