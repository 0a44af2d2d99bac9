package anser_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
)

// If a transport requires it, each stream has a connection that begins and ends with it, and calls
// use others.
func TestStreamsApart(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent)
		anser.HandleStream(s, "Echo.Talk", func(ctx context.Context, st *anser.Stream[[]byte, []byte]) error {
			for in, err := range st.All() {
				if err != nil {
					return err
				}
				st.Send(in)
			}
			return nil
		})
		anser.Handle(s, "Echo.Say", echo)
		run(t, s, network.Listen("a:1"))
		pigeon := carrier("pigeon", network)
		pigeon.StreamsApart = true
		c := dial(t, "pigeon://a:1", pigeon, anser.Conns(1))
		if _, err := call(context.Background(), c, "Echo.Say", "hello"); err != nil {
			t.Fatal(err)
		}
		conns := func(want int, when string) {
			t.Helper()
			time.Sleep(10 * time.Millisecond)
			if n := s.Stats().Conns; n != want {
				t.Errorf("%d connections %s, want %d", n, when, want)
			}
		}
		conns(1, "after a call")
		var open []*anser.Stream[[]byte, []byte]
		for range 3 {
			st, err := anser.Open[[]byte, []byte](context.Background(), c, "Echo.Talk")
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, st)
		}
		conns(4, "with three streams")
		for _, st := range open {
			if err := st.Send(text("a")); err != nil {
				t.Error(err)
			}
			if out, err := st.Recv(); err != nil || string(*out) != "a" {
				t.Error(out, err)
			}
		}
		open[0].CloseSend()
		if _, err := open[0].Recv(); err != io.EOF {
			t.Error(err)
		}
		conns(3, "after the first stream has ended")
		open[1].Close()
		conns(2, "after the second was closed")
		c.Close()
		if _, err := open[2].Recv(); anser.CodeOf(err) != anser.Canceled {
			t.Error(err)
		}
		conns(0, "after the client was closed")
	})
}

// A stream that gets no connection was not opened, and gives up when its context ends.
func TestStreamsApartWithoutAServer(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		pigeon := carrier("pigeon", network)
		pigeon.StreamsApart = true
		c := dial(t, "pigeon://a:1", pigeon)
		_, err := anser.Open[[]byte, []byte](context.Background(), c, "Echo.Talk", anser.WithFailMode(anser.Failfast))
		wantFault(t, err, anser.Unavailable, anser.NotSent)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err = anser.Open[[]byte, []byte](ctx, c, "Echo.Talk")
		fault(t, err)
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("opening took %v", d)
		}
	})
}

// If the instances are connected, but give streams no connections of their own, opening a stream
// does not dial endlessly without a wait.
func TestStreamsApartRefused(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, address := range []string{"a:1", "b:1"} {
			serve(t, network.Listen(address), map[string]handler{"Echo.Say": echo})
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var full atomic.Bool
		var refused atomic.Int32
		pigeon := carrier("pigeon", network)
		dialing := pigeon.Dial
		pigeon.Dial = func(ctx context.Context, address string, t *tls.Config) (net.Conn, error) {
			if !full.Load() {
				return dialing(ctx, address, t)
			}
			if refused.Add(1) == 1000 {
				cancel() // the time of the bubble does not pass while the client is busy
			}
			return nil, errors.New("no more connections")
		}
		pigeon.StreamsApart = true
		c := dial(t, "pigeon://a:1,b:1", pigeon, anser.Balancer(balance.RoundRobin()))
		for range 4 {
			if _, err := call(ctx, c, "Echo.Say", "hello"); err != nil {
				t.Fatal(err)
			}
		}
		full.Store(true)
		_, err := anser.Open[[]byte, []byte](ctx, c, "Echo.Talk")
		fault(t, err)
		if n := refused.Load(); n > 200 {
			t.Errorf("%d connections were tried in 10 s", n)
		}
	})
}
