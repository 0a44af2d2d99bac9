package anser_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// The client of a connection over the limit learns which limit that is.
func TestMaxConns(t *testing.T) {
	l := listen(t)
	s := serve(t, l, map[string]handler{"Echo.Say": echo}, anser.MaxConns(1))
	first := dial(t, l.Addr().String(), anser.Conns(1))
	if _, err := call(context.Background(), first, "Echo.Say", ""); err != nil {
		t.Fatal(err)
	}
	second := dial(t, l.Addr().String(), anser.Conns(1), anser.MaxMessage(1<<20)) // a connection of its own
	_, err := call(context.Background(), second, "Echo.Say", "", anser.WithFailMode(anser.Failfast))
	e := wantFault(t, err, anser.Unavailable, anser.NotSent)
	if !strings.Contains(e.Message, "limit of 1 connections (anser.MaxConns)") {
		t.Error(e.Message)
	}
	eventually(t, "the refused connection is counted", func() bool { return s.Stats().Closed["OVERLOAD"] > 0 })
}

// Calls beyond the limit of running calls are refused, and succeed when they are retried.
func TestMaxInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent, anser.MaxInFlight(3))
		anser.Handle(s, "Echo.Slow", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			time.Sleep(time.Second)
			return in, nil
		}, anser.Concurrent())
		run(t, s, network.Listen("a:1"))
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		var calls []*anser.Future[[]byte]
		for range 3 {
			calls = append(calls, anser.Go[[]byte](context.Background(), c, "Echo.Slow", text("")))
		}
		synctest.Wait()
		_, err := call(context.Background(), c, "Echo.Slow", "", anser.WithFailMode(anser.Failfast))
		if e := wantFault(t, err, anser.ResourceExhausted, anser.Refused); e.Message != "the server is at its limit of 3 calls in flight (anser.MaxInFlight)" {
			t.Error(e.Message)
		}
		for _, f := range calls {
			if _, err := f.Wait(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait() // a call counts until its reply is sent
		if _, err := call(context.Background(), c, "Echo.Slow", ""); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if st := s.Stats(); st.Refused != 1 || st.InFlight != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A connection has no more open calls than its settings allow, whatever the server allows in
// total. A cancelled call is open until its handler has returned.
func TestMaxCallsOfAConnection(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		release := make(chan struct{})
		free := sync.OnceFunc(func() { close(release) })
		defer free()
		s := anser.NewServer(silent, anser.MaxInFlight(1<<20))
		anser.Handle(s, "Echo.Wait", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			<-release
			return in, nil
		}, anser.Concurrent())
		run(t, s, network.Listen("a:1"))
		p, other := rawClient(t, network, "a:1"), rawClient(t, network, "a:1")
		name := wire.AppendMethod(nil, 1, "Echo.Wait")
		p.Send(name)
		other.Send(name, wirepeer.Request(1, 1, nil))
		limit := wire.DefaultSettings().MaxCalls
		for id := range limit {
			p.Send(wirepeer.Request(id+1, 1, nil))
		}
		p.Send(wire.AppendCancel(nil, 1))
		synctest.Wait()
		if n := s.Stats().InFlight; n != int64(limit)+1 {
			t.Fatalf("%d calls in flight", n)
		}
		p.Send(wirepeer.Request(limit+1, 1, nil))
		f, err := p.NextOf(wire.TypeReply, wire.TypeError)
		if f.Type != wire.TypeError || f.ID != limit+1 || err != nil {
			t.Fatal(f.Type, f.ID, err)
		}
		if e, _ := wire.ParseError(f.Flags, f.Body); e.Code != wire.ResourceExhausted || e.Outcome != wire.Refused {
			t.Errorf("%+v", e)
		}
		free()
		for range limit - 1 {
			if f, err := p.Next(); f.Type != wire.TypeReply || err != nil {
				t.Fatal(f.Type, err)
			}
		}
		p.Send(wirepeer.Request(limit+2, 1, nil))
		if f, err := p.Next(); f.Type != wire.TypeReply || err != nil {
			t.Fatal(f.Type, err)
		}
	})
}

// Connections that do not finish their handshake do not delay other connections for long.
func TestMaxHandshakes(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.MaxHandshakes(4))
		early := dial(t, "a:1", anser.Dialer(network.Dial))
		if _, err := call(context.Background(), early, "Echo.Say", ""); err != nil {
			t.Fatal(err)
		}
		for range 8 {
			nc, err := network.Dial(context.Background(), "tcp", "a:1")
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
		}
		synctest.Wait()
		began := time.Now()
		if _, err := call(context.Background(), early, "Echo.Say", ""); err != nil || time.Since(began) != 0 {
			t.Error("a connection that stands was held up:", time.Since(began), err)
		}
		late := dial(t, "a:1", anser.Dialer(network.Dial), anser.MaxMessage(1<<20), anser.HandshakeTimeout(time.Minute))
		if _, err := call(context.Background(), late, "Echo.Say", "", anser.Timeout(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("a new connection waited %v behind eight that do not speak", d)
		}
	})
}

// A call that finds all connections at the limit goes to another instance with room at once.
// Without one it fails, and nothing of it was sent.
func TestMaxCallsElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		release := make(chan struct{})
		var ran [2]atomic.Int32
		for i, at := range []string{"a:1", "b:1"} {
			s := anser.NewServer(silent, anser.MaxCalls(2), anser.MaxConns(1))
			anser.Handle(s, "Echo.Wait", func(_ context.Context, in *[]byte) (*[]byte, error) {
				ran[i].Add(1)
				<-release
				return in, nil
			}, anser.Concurrent())
			run(t, s, network.Listen(at))
		}
		// With Maglev a key has its own instance, whatever the load of that one.
		c := dial(t, "a:1,b:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Balancer(balance.Maglev()))
		var replies []*anser.Future[[]byte]
		for n := range 4 {
			replies = append(replies, anser.Go[[]byte](context.Background(), c, "Echo.Wait", text(""), anser.HashKey("k")))
			synctest.Wait()
			if a, b := ran[0].Load(), ran[1].Load(); a+b != int32(n)+1 || max(a, b) > 2 {
				t.Errorf("%d and %d of %d calls run", a, b, n+1)
			}
		}
		before := time.Now()
		_, err := call(context.Background(), c, "Echo.Wait", "", anser.HashKey("k"))
		if wantFault(t, err, anser.ResourceExhausted, anser.NotSent); time.Since(before) > 0 {
			t.Errorf("the call waited %v", time.Since(before))
		}
		close(release)
		for _, r := range replies {
			if _, err := r.Wait(); err != nil {
				t.Error(err)
			}
		}
	})
}
