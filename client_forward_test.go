package anser_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A call that is forwarded has the attempts of the client: a refusal leads to another instance, and
// the refusal of all of them comes back.
func TestForwardAttempts(t *testing.T) {
	network := new(ansertest.Network)
	var ran atomic.Int64
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": func(context.Context, *[]byte) (*[]byte, error) {
		ran.Add(1)
		return nil, anser.Refuse(anser.Unavailable, "busy")
	}})
	serve(t, network.Listen("b:1"), map[string]handler{"Echo.Say": echo})
	forwardTo(t, network, "tcp://a:1,b:1")
	c := dial(t, "gw:1", anser.Dialer(network.Dial))
	for range 100 {
		if out, err := call(context.Background(), c, "Echo.Say", "x"); err != nil || out != "x" {
			t.Fatal(out, err)
		}
	}
	if ran.Load() == 0 {
		t.Error("the first instance was never asked")
	}
	_, err := call(context.Background(), c, "Echo.None", "")
	wantFault(t, err, anser.Unimplemented, anser.Refused)
}

// An instance that does not serve a method refuses it, and another one that does gets the call.
func TestForwardToTheInstanceThatServes(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), nil)
	serve(t, network.Listen("b:1"), map[string]handler{"Echo.Say": echo})
	forwardTo(t, network, "tcp://a:1,b:1")
	c := dial(t, "gw:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Failfast))
	for range 20 {
		if out, err := call(context.Background(), c, "Echo.Say", "x"); err != nil || out != "x" {
			t.Fatal(out, err)
		}
	}
}

// A retry of the caller is not retried once more.
func TestForwardARetry(t *testing.T) {
	network := new(ansertest.Network)
	var asked atomic.Int64
	for _, address := range []string{"a:1", "b:1", "c:1"} {
		serve(t, network.Listen(address), map[string]handler{"Echo.Say": func(context.Context, *[]byte) (*[]byte, error) {
			asked.Add(1)
			return nil, anser.Refuse(anser.Unavailable, "busy")
		}})
	}
	forwardTo(t, network, "tcp://a:1,b:1,c:1")
	p := rawClient(t, network, "gw:1")
	p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendRequest(nil, 1, 0, &wire.Request{Method: 1, Codec: 1, Attempt: 1, Priority: 2}))
	if f, err := p.NextOf(wire.TypeReply, wire.TypeError); err != nil || f.Type != wire.TypeError {
		t.Fatal(f, err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// A reply that is lost leaves the outcome unknown, and a call that was never sent did not run.
func TestForwardOutcomes(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			p.NextOf(wire.TypeRequest)
			p.Conn.Close()
		})
		s, _ := forwardTo(t, network, "a:1")
		c := dial(t, "gw:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Failfast))
		_, err := call(context.Background(), c, "Echo.Say", "x")
		if e := wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown); !e.Remote || !strings.Contains(e.Message, "forwarded") || strings.Contains(e.Message, "a:1") {
			t.Errorf("%+v", e)
		}
		lost := dial(t, "nobody:1", anser.Dialer(network.Dial))
		l := network.Listen("gw:2")
		two := anser.NewServer(silent, anser.Forward(func(context.Context, *anser.ForwardCall) (*anser.Client, string, error) { return lost, "", nil }))
		run(t, two, l)
		c = dial(t, "gw:2", anser.Dialer(network.Dial), anser.WithFailMode(anser.Failfast))
		_, err = call(context.Background(), c, "Echo.Say", "x", anser.Timeout(5*time.Second))
		if e := wantFault(t, err, anser.Unavailable, anser.Refused); strings.Contains(e.Message, "nobody") {
			t.Errorf("%+v", e)
		}
		synctest.Wait()
		if n := s.Stats().InFlight + two.Stats().InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
}

// A hostile server hurts only the calls that it has: its connection ends, and they get errors.
func TestForwardFromAHostileServer(t *testing.T) {
	long := wire.AppendHeader(nil, wire.Header{Length: 1 << 30, Type: wire.TypeReply, ID: 1})
	short := wire.AppendHeader(nil, wire.Header{Length: 1, Type: wire.TypeReply, ID: 1})
	for name, answer := range map[string][]byte{
		"a length over the limit":  long,
		"a body that is too short": append(short, 1),
		"a length within the body": wire.AppendReplyHead(nil, 1, wire.FlagMetadata, 1, 0, []byte{255, 255, 255, 0, 1, 0}),
		"another codec":            wire.AppendReplyHead(nil, 1, 0, 9, 0, nil),
		"an unknown compression":   wire.AppendReplyHead(nil, 1, 0, 1, 77, nil),
		"a reply to nothing":       wire.AppendReplyHead(nil, 99, 0, 1, 0, nil),
	} {
		t.Run(name, func(t *testing.T) {
			network := new(ansertest.Network)
			rawServer(t, network.Listen("evil:1"), func(p *wirepeer.Peer) {
				if _, err := p.NextOf(wire.TypeRequest); err == nil {
					p.Send(answer)
					io.Copy(io.Discard, p.Conn)
				}
			})
			serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
			evil, good := dial(t, "evil:1", anser.Dialer(network.Dial)), dial(t, "a:1", anser.Dialer(network.Dial))
			s := anser.NewServer(silent, anser.Forward(func(_ context.Context, call *anser.ForwardCall) (*anser.Client, string, error) {
				if call.Method == "Evil.Say" {
					return evil, "", nil
				}
				return good, "", nil
			}))
			run(t, s, network.Listen("gw:1"))
			c := dial(t, "gw:1", anser.Dialer(network.Dial), anser.Conns(1))
			f := anser.Go[[]byte](context.Background(), c, "Evil.Say", text("x"))
			for range 10 {
				if out, err := call(context.Background(), c, "Echo.Say", "y"); err != nil || out != "y" {
					t.Fatal(out, err)
				}
			}
			_, err := f.Wait()
			if e := fault(t, err); e.Outcome != anser.OutcomeUnknown {
				t.Error(err)
			}
		})
	}
}

// Interceptors and modes of the client, and interceptors of the server, see calls that are
// forwarded.
func TestForwardThroughInterceptors(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		if string(*in) == "fail" {
			return nil, anser.Errorf(anser.Aborted, "failed").WithDetails([]byte("details"))
		}
		return in, anser.SetTrailer(ctx, "tenant", anser.MetadataFrom(ctx)["tenant"])
	}}, anser.Deduplicate())
	var seen []string
	see := func(side string) anser.Interceptor {
		return func(next anser.Func) anser.Func {
			return func(ctx context.Context, inv *anser.Invocation) error {
				seen = append(seen, side+" "+string(*inv.Request.(*[]byte)))
				return next(ctx, inv)
			}
		}
	}
	for _, c := range []struct {
		name    string
		client  []anser.DialOption
		server  []anser.ServerOption
		through string
	}{
		{"client", []anser.DialOption{anser.Intercept(see("client"))}, nil, "client"},
		{"server", nil, []anser.ServerOption{anser.Intercept(see("server"))}, "server"},
		{"backup", []anser.DialOption{anser.WithFailMode(anser.Backup), anser.Idempotent()}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			network := network
			seen = nil
			up := dial(t, "a:1", append(c.client, anser.Dialer(network.Dial))...)
			s := anser.NewServer(append(c.server, silent, anser.Forward(func(context.Context, *anser.ForwardCall) (*anser.Client, string, error) { return up, "", nil }))...)
			l := network.Listen("gw" + c.name + ":1")
			run(t, s, l)
			client := dial(t, "gw"+c.name+":1", anser.Dialer(network.Dial))
			var trailer anser.Metadata
			ctx := anser.WithMetadata(context.Background(), anser.Metadata{"tenant": "acme"})
			if out, err := call(ctx, client, "Echo.Say", "hello", anser.Trailer(&trailer)); err != nil || out != "hello" || trailer["tenant"] != "acme" {
				t.Fatal(out, trailer, err)
			}
			_, err := call(ctx, client, "Echo.Say", "fail")
			if e := wantFault(t, err, anser.Aborted, anser.Executed); string(e.Details) != "details" || e.Message != "failed" {
				t.Errorf("%+v", e)
			}
			if c.through != "" && strings.Join(seen, ",") != c.through+" hello,"+c.through+" fail" {
				t.Error(seen)
			}
			if n := s.Stats().InFlight; n != 0 {
				eventually(t, "nothing in flight", func() bool { return s.Stats().InFlight == 0 })
			}
		})
	}
}

// A oneway message is forwarded, and one with a key is deduplicated by the server behind.
func TestForwardOnewayAndKeys(t *testing.T) {
	network := new(ansertest.Network)
	got := make(chan string, 10)
	var ran atomic.Int64
	behind := anser.NewServer(silent, anser.Deduplicate())
	anser.HandleOneway(behind, "Log.Write", func(_ context.Context, in *[]byte) error {
		got <- string(*in)
		return nil
	})
	anser.Handle(behind, "Count.Up", func(_ context.Context, in *[]byte) (*[]byte, error) {
		ran.Add(1)
		return in, nil
	})
	run(t, behind, network.Listen("a:1"))
	s, _ := forwardTo(t, network, "a:1")
	c := dial(t, "gw:1", anser.Dialer(network.Dial))
	for _, m := range []string{"one", "two", "three"} {
		if err := anser.Send(context.Background(), c, "Log.Write", text(m)); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]bool{<-got: true, <-got: true, <-got: true}
	if len(all) != 3 {
		t.Error(all)
	}
	for range 3 {
		if _, err := call(context.Background(), c, "Count.Up", "x", anser.IdempotencyKey("a-key")); err != nil {
			t.Fatal(err)
		}
	}
	if n := ran.Load(); n != 1 {
		t.Errorf("the call ran %d times", n)
	}
	eventually(t, "nothing in flight", func() bool { return s.Stats().InFlight == 0 })
}

// Calls wait for a connection as others do, and a client that cannot make replies of its own is
// refused.
func TestForwardWaitsForAConnection(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		forwardTo(t, network, "a:1")
		c := dial(t, "gw:1", anser.Dialer(network.Dial))
		f := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("x"))
		g := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("x"))
		synctest.Wait() // both wait
		g.Cancel()
		if _, err := g.Wait(); !errors.Is(err, anser.Canceled) {
			t.Error(err)
		}
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		if out, err := f.Wait(); err != nil || string(*out) != "x" {
			t.Error(err)
		}
	})
	network := new(ansertest.Network)
	forwardToClient(t, network, dial(t, "a:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Failsafe)))
	_, err := call(context.Background(), dial(t, "gw:1", anser.Dialer(network.Dial)), "Echo.Say", "x")
	wantFault(t, err, anser.FailedPrecondition, anser.Refused)
}

// Many calls, cancels and lost connections at once leave nothing open.
func TestForwardAtRandom(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		if len(*in)%3 == 0 {
			time.Sleep(time.Millisecond)
		}
		return in, nil
	}})
	s, up := forwardTo(t, network, "a:1")
	_ = up
	for range 4 {
		c, err := anser.Dial("gw:1", silent, anser.NoSnapshot(), anser.Dialer(network.Dial))
		if err != nil {
			t.Fatal(err)
		}
		var calls []*anser.Future[[]byte]
		for i := range 500 {
			in := strings.Repeat("x", i)
			calls = append(calls, anser.Go[[]byte](context.Background(), c, "Echo.Say", &[]byte{}))
			calls = append(calls, anser.Go[[]byte](context.Background(), c, "Echo.Say", text(in)))
			if i%5 == 0 {
				calls[i].Cancel()
			}
		}
		for i, f := range calls {
			if out, err := f.Wait(); err == nil && i%2 == 1 && len(*out) != i/2 {
				t.Fatalf("call %d: %d bytes", i, len(*out))
			} else if err != nil && !errors.Is(err, anser.Canceled) {
				t.Fatal(err)
			}
		}
		for range 100 {
			anser.Go[[]byte](context.Background(), c, "Echo.Say", text("xxx"))
		}
		c.Close()
	}
	eventually(t, "nothing is in flight", func() bool { st := s.Stats(); return st.InFlight == 0 && st.Memory == 0 })
}
