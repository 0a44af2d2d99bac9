package anser_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
)

// forwardTo runs a server at gw:1 that forwards all calls to a client of target.
func forwardTo(t testing.TB, n *ansertest.Network, target string, opts ...anser.ServerOption) (*anser.Server, *anser.Client) {
	t.Helper()
	up := dial(t, target, anser.Dialer(n.Dial))
	return forwardToClient(t, n, up, opts...), up
}

func forwardToClient(t testing.TB, n *ansertest.Network, up *anser.Client, opts ...anser.ServerOption) *anser.Server {
	t.Helper()
	s := anser.NewServer(append([]anser.ServerOption{silent, anser.Forward(func(context.Context, *anser.ForwardCall) (*anser.Client, string, error) {
		return up, "", nil
	})}, opts...)...)
	run(t, s, n.Listen("gw:1"))
	return s
}

// renamed is a codec that no server has by default.
type renamed struct{ codec.Codec }

func (renamed) ID() uint8 { return 200 }

func (renamed) Fits(any) bool { return true }

// A call that is forwarded is the same call there: message, codec, metadata, trace, priority, the
// time that is left and the number of the attempt arrive, and trailers come back.
func TestForward(t *testing.T) {
	network := new(ansertest.Network)
	behind := anser.NewServer(silent, anser.Codecs(renamed{codec.Raw{}}))
	anser.Handle(behind, "Arith.Mul", mul)
	anser.Handle(behind, "Echo.Say", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		trace, _ := anser.TraceFrom(ctx)
		deadline, bounded := ctx.Deadline()
		if left := time.Until(deadline); !bounded || left > 20*time.Second || left < time.Second {
			return nil, anser.Errorf(anser.Internal, "%v are left", left)
		}
		if anser.PriorityFrom(ctx) != anser.Critical || trace.SpanID[0] != 7 {
			return nil, anser.Errorf(anser.Internal, "priority %v, trace %v", anser.PriorityFrom(ctx), trace)
		}
		md := anser.MetadataFrom(ctx)
		return in, anser.SetTrailer(ctx, "seen", md["tenant"]+" "+md["flow-day"]+" "+md["subject"])
	})
	run(t, behind, network.Listen("a:1"))
	up := dial(t, "a:1", anser.Dialer(network.Dial))
	s := anser.NewServer(silent, anser.Forward(func(ctx context.Context, call *anser.ForwardCall) (*anser.Client, string, error) {
		switch call.Method {
		case "Arith.Mul":
			return up, "", nil
		case "Old.Say":
			if call.Codec != 200 || call.Stream || call.Oneway || anser.MetadataFrom(ctx)["tenant"] != "acme" {
				return nil, "", anser.Errorf(anser.Internal, "%+v", call)
			}
			call.Set = anser.Metadata{"Subject": "ann", "flow-day": ""}
			return up, "Echo.Say", nil
		case "No.Way":
			return nil, "", anser.Errorf(anser.NotFound, "no way").WithRetryAfter(anser.RetryNever)
		case "No.Reason":
			return nil, "", errors.New("no reason")
		case "No.Care":
			panic("no care")
		}
		return nil, "", nil
	}))
	anser.Handle(s, "Own.Say", echo)
	run(t, s, network.Listen("gw:1"))
	c := dial(t, "gw:1", anser.Dialer(network.Dial))
	ctx := context.Background()
	if out, err := anser.Call[Reply](ctx, c, "Arith.Mul", &Args{6, 7}); err != nil || out.C != 42 {
		t.Fatalf("%+v, %v", out, err)
	}
	if out, err := call(ctx, c, "Own.Say", "here"); err != nil || out != "here" {
		t.Error(out, err)
	}
	rich := anser.WithMetadata(ctx, anser.Metadata{"tenant": "acme", "flow-day": "monday", "subject": "mallory"})
	rich = anser.WithPriority(anser.WithTrace(rich, anser.Trace{TraceID: [16]byte{1}, SpanID: [8]byte{7}}), anser.Critical)
	var trailer anser.Metadata
	out, err := call(rich, c, "Old.Say", "hello", anser.Codec(renamed{codec.Raw{}}), anser.Trailer(&trailer), anser.Timeout(20*time.Second))
	if err != nil || out != "hello" || trailer["seen"] != "acme  ann" {
		t.Error(out, trailer, err)
	}
	for method, want := range map[string]struct {
		code anser.Code
		text string
	}{
		"No.Way":        {anser.NotFound, "no way"},
		"No.Reason":     {anser.Unknown, "no reason"},
		"No.Care":       {anser.Internal, "the function of anser.Forward panicked"},
		"Else.Where":    {anser.Unimplemented, `method "Else.Where" is not served here`},
		"Anser.Nothing": {anser.Unimplemented, "is not served here"},
	} {
		_, err := call(ctx, c, method, "")
		if e := wantFault(t, err, want.code, anser.Refused); !strings.Contains(e.Message, want.text) {
			t.Errorf("%s: %v", method, err)
		}
	}
	// What the other server refuses comes back as it is.
	_, err = call(ctx, c, "Arith.Mul", "x", anser.Codec(renamed{codec.Raw{}}))
	if e := wantFault(t, err, anser.InvalidArgument, anser.Refused); strings.Contains(e.Message, "forwarded") {
		t.Error(err)
	}
	m := s.Stats().Methods
	if m["Arith.Mul"] != (anser.MethodStats{Calls: 2, Refused: 1}) || m["Old.Say"] != (anser.MethodStats{Calls: 1}) {
		t.Errorf("%+v", m)
	}
	if _, listed := m["No.Way"]; listed {
		t.Errorf("%+v", m)
	}
}

// A method that is added later is served, and no longer forwarded.
func TestForwardUntilServed(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
	s, _ := forwardTo(t, network, "a:1")
	c := dial(t, "gw:1", anser.Dialer(network.Dial))
	if out, err := call(context.Background(), c, "Echo.Say", "there"); err != nil || out != "there" {
		t.Fatal(out, err)
	}
	anser.Handle(s, "Echo.Say", func(context.Context, *[]byte) (*[]byte, error) { return text("here"), nil })
	if out, err := call(context.Background(), c, "Echo.Say", "there"); err != nil || out != "here" {
		t.Fatal(out, err)
	}
}

func TestForwardMistakes(t *testing.T) {
	s := anser.NewServer(silent, anser.Forward(nil))
	if err := s.Serve(listen(t)); err == nil || !strings.Contains(err.Error(), "anser.Forward") {
		t.Error(err)
	}
}

// The function that chose where a call goes learns once that it has ended there, however it ended.
func TestForwardEnded(t *testing.T) {
	network := new(ansertest.Network)
	behind := anser.NewServer(silent)
	anser.Handle(behind, "Arith.Mul", mul)
	anser.Handle(behind, "Echo.Fail", func(context.Context, *[]byte) (*[]byte, error) { return nil, anser.Errorf(anser.Aborted, "no") })
	anser.Handle(behind, "Echo.Wait", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		<-ctx.Done()
		return in, nil
	}, anser.Concurrent())
	anser.StreamMethod[[]byte, []byte]("Chat.Talk").Handle(behind, talk)
	run(t, behind, network.Listen("a:1"))
	up, nobody := dial(t, "a:1", anser.Dialer(network.Dial)), dial(t, "b:1", anser.Dialer(network.Dial), anser.Attempts(1))
	for address, opts := range map[string][]anser.ServerOption{
		"plain:1":       nil,
		"intercepted:1": {anser.Intercept(func(next anser.Func) anser.Func { return next })},
	} {
		var chosen, ended atomic.Int64
		s := anser.NewServer(append(opts, silent, anser.Forward(func(_ context.Context, call *anser.ForwardCall) (*anser.Client, string, error) {
			var once atomic.Bool
			call.Ended = func() {
				if once.Swap(true) {
					t.Errorf("%s: a call of %s has ended twice", address, call.Method)
				}
				ended.Add(1)
			}
			switch call.Method {
			case "No.Way":
				return nil, "", errors.New("no way")
			case "No.Care":
				panic("no care")
			}
			if chosen.Add(1); call.Method == "No.One" {
				return nobody, "", nil
			}
			return up, "", nil
		}))...)
		run(t, s, network.Listen(address))
		c := dial(t, address, anser.Dialer(network.Dial), anser.Attempts(1))
		ctx, cancel := context.WithCancel(t.Context())
		if out, err := anser.Call[Reply](ctx, c, "Arith.Mul", &Args{6, 7}); err != nil || out.C != 42 {
			t.Fatalf("%s: %+v, %v", address, out, err)
		}
		for _, method := range []string{"Echo.Fail", "No.Way", "No.Care", "No.One", "Echo.None"} {
			if _, err := call(ctx, c, method, "", anser.Timeout(time.Second)); err == nil {
				t.Errorf("%s: %s succeeds", address, method)
			}
		}
		if err := c.Send(ctx, "Arith.Mul", &Args{6, 7}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		waits := make(chan error, 1)
		go func() {
			_, err := call(ctx, c, "Echo.Wait", "")
			waits <- err
		}()
		st := open(t, ctx, c, "Chat.Talk")
		say(t, st, "a")
		hear(t, st, "a")
		eventually(t, "all but two have ended", func() bool { return chosen.Load() == 7 && ended.Load() == 5 })
		cancel()
		if err := <-waits; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", address, err)
		}
		eventually(t, "all have ended", func() bool { return ended.Load() == 7 })
	}
}
