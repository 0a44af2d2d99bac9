package anser_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

type beganKey struct{}

func resultOf(err error) string {
	if err == nil {
		return "ok"
	}
	return fmt.Sprintf("%v, %v", anser.CodeOf(err), anser.OutcomeOf(err))
}

// calls returns an observer that records whole calls, and the time that they took.
func (n *notes) calls(side string) anser.Observer {
	return anser.Observer{
		CallBegan: func(ctx context.Context, c *anser.CallInfo) context.Context {
			n.add(fmt.Sprintf("%s began %s%s", side, c.Method, kindOf(c)))
			return context.WithValue(ctx, beganKey{}, side)
		},
		CallEnded: func(ctx context.Context, c *anser.CallInfo) {
			with := ctx.Value(beganKey{})
			n.add(fmt.Sprintf("%s ended %q%s: %v, attempt %d at %q, took %v: %v, %v, %v, %v; with %v", side, c.Method, kindOf(c), resultOf(c.Err), c.Attempt, c.Address, c.Duration, c.Queue, c.Decode, c.Handle, c.Encode, with))
		},
		Made:  func(any) { n.add(side + " made") },
		Ended: func(any) { n.add(side + " ended") },
	}
}

func kindOf(c *anser.CallInfo) (s string) {
	if c.Stream {
		s += ", a stream"
	}
	if c.Oneway {
		s += ", oneway"
	}
	if c.Forward {
		s += ", forwarded"
	}
	if c.Replayed {
		s += ", replayed"
	}
	return s
}

// A call of each kind begins and ends once at each side, with its times.
func TestObserverOfCalls(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		atServer, atClient := new(notes), new(notes)
		s := anser.NewServer(silent, anser.Observe(atServer.calls("s")))
		anser.Handle(s, "Echo.Say", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			if ctx.Value(beganKey{}) != "s" {
				return nil, errors.New("the handler has another context")
			}
			time.Sleep(2 * time.Second)
			if len(*in) == 0 {
				return nil, anser.Errorf(anser.NotFound, "nothing said")
			}
			return in, nil
		}, anser.Deduplicate())
		anser.Handle(s, "Echo.Panic", func(context.Context, *[]byte) (*[]byte, error) { panic("on purpose") })
		anser.HandleStream(s, "Echo.Stream", func(ctx context.Context, st *anser.Stream[[]byte, []byte]) error {
			if ctx.Value(beganKey{}) != "s" || st.Context().Value(beganKey{}) != "s" {
				return errors.New("the handler has another context")
			}
			_, err := st.Recv()
			if err == io.EOF {
				err = nil
			}
			return err
		})
		expectNotes(t, atServer, "s made")
		run(t, s, network.Listen("a:1"))
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Observe(atClient.calls("c")))
		expectNotes(t, atClient, "c made")
		ctx := context.Background()

		call(ctx, c, "Echo.Say", "hello")
		expectNotes(t, atClient, "c began Echo.Say", `c ended "Echo.Say": ok, attempt 0 at "a:1", took 2s: 0s, 0s, 0s, 0s; with c`)
		expectNotes(t, atServer, "s began Echo.Say", `s ended "Echo.Say": ok, attempt 0 at "", took 2s: 0s, 0s, 2s, 0s; with s`)

		anser.Go[[]byte](ctx, c, "Echo.Say", text("")).Wait()
		expectNotes(t, atClient, "c began Echo.Say", `c ended "Echo.Say": not found, executed, attempt 0 at "a:1", took 2s: 0s, 0s, 0s, 0s; with c`)
		expectNotes(t, atServer, "s began Echo.Say", `s ended "Echo.Say": not found, executed, attempt 0 at "", took 2s: 0s, 0s, 2s, 0s; with s`)

		for range 2 {
			if _, err := anser.Call[[]byte](ctx, c, "Echo.Say", text("once"), anser.IdempotencyKey("k")); err != nil {
				t.Fatal(err)
			}
		}
		took := `attempt 0 at "a:1", took `
		expectNotes(t, atClient, "c began Echo.Say", `c ended "Echo.Say": ok, `+took+`2s: 0s, 0s, 0s, 0s; with c`, "c began Echo.Say", `c ended "Echo.Say": ok, `+took+`0s: 0s, 0s, 0s, 0s; with c`)
		expectNotes(t, atServer, "s began Echo.Say", `s ended "Echo.Say": ok, attempt 0 at "", took 2s: 0s, 0s, 2s, 0s; with s`, "s began Echo.Say",
			`s ended "Echo.Say", replayed: ok, attempt 0 at "", took 0s: 0s, 0s, 0s, 0s; with s`)

		call(ctx, c, "Echo.Panic", "x")
		expectNotes(t, atClient, "c began Echo.Panic", `c ended "Echo.Panic": internal, executed, attempt 0 at "a:1", took 0s: 0s, 0s, 0s, 0s; with c`)
		expectNotes(t, atServer, "s began Echo.Panic", `s ended "Echo.Panic": internal, executed, attempt 0 at "", took 0s: 0s, 0s, 0s, 0s; with s`)

		call(ctx, c, "Echo.Missing", "x")
		expectNotes(t, atClient, "c began Echo.Missing", `c ended "Echo.Missing": unimplemented, refused, attempt 0 at "a:1", took 0s: 0s, 0s, 0s, 0s; with c`)
		expectNotes(t, atServer, `s ended "": unimplemented, refused, attempt 0 at "", took 0s: 0s, 0s, 0s, 0s; with <nil>`)

		if err := anser.Send(ctx, c, "Echo.Say", text("oneway")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		expectNotes(t, atClient, "c began Echo.Say, oneway", `c ended "Echo.Say", oneway: ok, attempt 0 at "a:1", took 0s: 0s, 0s, 0s, 0s; with c`)
		expectNotes(t, atServer, "s began Echo.Say, oneway", `s ended "Echo.Say", oneway: ok, attempt 0 at "", took 2s: 0s, 0s, 2s, 0s; with s`)

		st, err := anser.Open[[]byte, []byte](ctx, c, "Echo.Stream")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		st.CloseSend()
		st.Recv()
		synctest.Wait()
		expectNotes(t, atClient, "c began Echo.Stream, a stream", `c ended "Echo.Stream", a stream: ok, attempt 0 at "a:1", took 1s: 0s, 0s, 0s, 0s; with c`)
		expectNotes(t, atServer, "s began Echo.Stream, a stream", `s ended "Echo.Stream", a stream: ok, attempt 0 at "", took 1s: 0s, 0s, 0s, 0s; with s`)

		s.Close()
		s.Close()
		c.Close()
		c.Close()
		expectNotes(t, atServer, "s ended")
		expectNotes(t, atClient, "c ended")
	})
}

// A call that is refused and sent again is one call at the client, and a forwarded call is one more
// at each side of the server that forwards it.
func TestObserverOfForwardedCalls(t *testing.T) {
	network := new(ansertest.Network)
	atServer, atFront, atBack := new(notes), new(notes), new(notes)
	s := anser.NewServer(silent, anser.Observe(atServer.calls("s")))
	anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	run(t, s, network.Listen("a:1"))
	back := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Observe(atBack.calls("b")))
	front := anser.NewServer(silent, anser.Observe(atFront.calls("f")),
		anser.Forward(func(context.Context, *anser.ForwardCall) (*anser.Client, string, error) { return back, "", nil }))
	run(t, front, network.Listen("f:1"))
	c := dial(t, "f:1", anser.Dialer(network.Dial), anser.Conns(1))
	if got, err := anser.Call[[]byte](context.Background(), c, "Echo.Say", text("hello")); err != nil || string(*got) != "hello" {
		t.Fatal(got, err)
	}
	for _, tt := range []struct {
		n    *notes
		want []string
	}{
		{atFront, []string{"f made", "f began Echo.Say, forwarded", `f ended "Echo.Say", forwarded: ok, attempt 0 at ""`}},
		{atBack, []string{"b made", "b began Echo.Say, forwarded", `b ended "Echo.Say", forwarded: ok, attempt 0 at "a:1"`}},
		{atServer, []string{"s made", "s began Echo.Say", `s ended "Echo.Say": ok, attempt 0 at ""`}},
	} {
		got := tt.n.take()
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], ", took")
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("noted %q, want %q", got, tt.want)
		}
	}
}

// A call that runs on the reader goroutine of its connection waits for the calls that were read
// before it.
func TestObserverOfInlineCalls(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var times []string
		s := anser.NewServer(silent, anser.Observe(anser.Observer{CallEnded: func(_ context.Context, c *anser.CallInfo) {
			times = append(times, fmt.Sprintf("%v: %v, %v", c.Duration, c.Queue, c.Handle))
		}}))
		anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) {
			time.Sleep(10 * time.Microsecond) // short, or another goroutine reads on
			return in, nil
		}, anser.Inline())
		run(t, s, network.Listen("a:1"))
		p := rawClient(t, network, "a:1")
		reply := make([]byte, len(wirepeer.Reply(0, []byte("x"))))
		id := uint64(0)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"))
		for range 2 {
			var requests []byte
			for range 3 {
				id++
				requests = append(requests, wirepeer.Request(id, 1, []byte("x"))...)
			}
			p.Send(requests)
			for range 3 {
				if _, err := io.ReadFull(p.Conn, reply); err != nil {
					t.Fatal(err)
				}
			}
		}
		one := []string{"10µs: 0s, 10µs", "20µs: 10µs, 10µs", "30µs: 20µs, 10µs"}
		if want := append(one, one...); !slices.Equal(times, want) {
			t.Errorf("times %v, want %v", times, want)
		}
	})
}

// The calls of a server to its clients have one target for all of them.
func TestObserverOfSessions(t *testing.T) {
	l := listen(t)
	var targets sync.Map
	s := anser.NewServer(silent, anser.Observe(anser.Observer{CallEnded: func(_ context.Context, c *anser.CallInfo) {
		targets.Store(fmt.Sprintf("%t %q %s: %v", c.Server, c.Target, c.Method, c.Err), true)
	}}))
	anser.Handle(s, "Echo.Ask", askBack)
	run(t, s, l)
	c := dial(t, l.Addr().String(), anser.Handlers(handlers(t)))
	if _, err := call(context.Background(), c, "Echo.Ask", "hello"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`true "" Echo.Ask: <nil>`, `false "session" Client.Shout: <nil>`} {
		if _, ok := targets.Load(want); !ok {
			t.Errorf("%s is missing", want)
			targets.Range(func(k, _ any) bool { t.Log(k); return true })
		}
	}
}

// A stream that ends while it is being opened has the record of its observers no longer.
func TestObserverOfShortStreams(t *testing.T) {
	s := anser.NewServer(silent)
	anser.HandleStream(s, "Feed.None", func(context.Context, *bytesStream) error { return nil })
	l := listen(t)
	run(t, s, l)
	var ended atomic.Int64
	c := dial(t, l.Addr().String(), anser.Conns(1), anser.Observe(anser.Observer{
		CallEnded: func(context.Context, *anser.CallInfo) { ended.Add(1) },
	}))
	const streams = 200
	for range streams {
		st, err := anser.Open[[]byte, []byte](t.Context(), c, "Feed.None")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Recv(); err != io.EOF {
			t.Fatal(err)
		}
	}
	eventually(t, "the end of all streams", func() bool { return ended.Load() == streams })
}
