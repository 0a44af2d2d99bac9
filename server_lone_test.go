package anser_test

import (
	"context"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// blockedBefore starts a server with Echo.Say, which blocks if it is told to. Workers run it, since
// it has blocked. Each call sends how many calls are in flight, without those on reader goroutines.
func blockedBefore(t *testing.T, network *ansertest.Network, opts ...anser.ServerOption) (s *anser.Server, inFlight chan int64) {
	s = anser.NewServer(append(opts, silent)...)
	inFlight = make(chan int64, 2)
	anser.Handle(s, "Echo.Say", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		inFlight <- s.Stats().InFlight
		if string(*in) == "block" {
			time.Sleep(20 * time.Millisecond)
		}
		return in, nil
	})
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
	for range 3 {
		if _, err := call(t.Context(), c, "Echo.Say", "block"); err != nil {
			t.Fatal(err)
		}
		<-inFlight
	}
	return s, inFlight
}

// A method that workers run, since it has blocked now and then, runs on the reader goroutine of a
// connection that carries one call at a time.
func TestLoneCallsNeedNoWorker(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s, inFlight := blockedBefore(t, network)
		connection := func() (say func(texts ...string) (onWorkers int64)) {
			p, id := rawClient(t, network, "a:1"), uint64(0)
			p.Send(wire.AppendMethod(nil, 1, "Echo.Say"))
			return func(texts ...string) (onWorkers int64) {
				var frames []byte
				for _, text := range texts {
					id++
					frames = append(frames, wirepeer.Request(id, 1, []byte(text))...)
				}
				p.Send(frames)
				for range texts {
					onWorkers = max(onWorkers, <-inFlight)
					if f, err := p.Next(); f.Type != wire.TypeReply || err != nil {
						t.Fatal(f.Type, err)
					}
				}
				return onWorkers
			}
		}
		say := connection()
		if say("") == 0 {
			t.Fatal("the method does not run on workers")
		}
		for range 100 {
			say("")
		}
		if say("") != 0 {
			t.Error("a worker runs a call of a connection with one call at a time")
		}
		if say("", "") == 0 {
			t.Error("the first of two calls holds up the second one")
		}
		if say("") == 0 {
			t.Error("the connection has had two calls at a time, and is taken for one with one")
		}
		for range 100 {
			say("")
		}
		if say("block") != 0 || s.Stats().Handoffs != 4 {
			t.Errorf("%d handoffs", s.Stats().Handoffs)
		}
		for range 100 {
			say("")
		}
		if say("") == 0 {
			t.Error("a connection on which a call has blocked is soon trusted again")
		}
	})
}

// A call of a connection that carries one call at a time does not hold up the answer to a ping that
// was read before it.
func TestLoneCallAfterPing(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		_, inFlight := blockedBefore(t, network)
		p, id := rawClient(t, network, "a:1"), uint64(0)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"))
		send := func(text string, before ...byte) {
			id++
			p.Send(append(before, wirepeer.Request(id, 1, []byte(text))...))
		}
		expect := func(want wire.Type) {
			t.Helper()
			if f, err := p.Next(); f.Type != want || err != nil {
				t.Fatal(f.Type, err)
			}
		}
		for range 100 {
			send("")
			<-inFlight
			expect(wire.TypeReply)
		}
		began := time.Now()
		send("block", wire.AppendPing(nil, wire.TypePing, 1)...)
		expect(wire.TypePong)
		if d := time.Since(began); d > 0 {
			t.Errorf("a ping was answered after %v", d)
		}
		<-inFlight
		expect(wire.TypeReply)
	})
}

// While the server calls the client, no call of the client holds up the reply.
func TestLoneCallDuringCallToClient(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		began := make(chan *anser.Session, 1)
		_, inFlight := blockedBefore(t, network, anser.OnSession(func(sess *anser.Session) { began <- sess }))
		h, asked, release := handlers(t), make(chan struct{}), make(chan struct{})
		anser.Handle(h, "Client.Wait", func(_ context.Context, in *[]byte) (*[]byte, error) {
			close(asked)
			<-release
			return in, nil
		})
		c := dial(t, "a:1", anser.Handlers(h), anser.Dialer(network.Dial), anser.Conns(1))
		say := func(in string) (onWorkers int64) {
			f := apart(t.Context(), c, "Echo.Say", text(in))
			onWorkers = <-inFlight
			if in != "block" {
				if _, err := f.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			return onWorkers
		}
		for range 100 {
			say("")
		}
		if say("") != 0 {
			t.Fatal("a worker runs a call of a connection with one call at a time")
		}
		f := anser.Go[[]byte](t.Context(), (<-began).Client(), "Client.Wait", text("hello"))
		<-asked
		say("block")
		since := time.Now()
		close(release)
		if _, err := f.Wait(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(since); d > 0 {
			t.Errorf("the reply of the client waited for %v behind a call of it", d)
		}
	})
}
