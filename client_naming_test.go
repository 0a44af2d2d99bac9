package anser_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/wire"
)

// moreNames is more than one connection can name.
const moreNames = wire.MaxMethods + 1000

// callNames calls methods that do not exist, each with its own name. Any other error ends the test.
func callNames(t *testing.T, c *anser.Client) {
	t.Helper()
	for i := range moreNames {
		_, err := call(context.Background(), c, fmt.Sprint("No.Such", i), "x")
		wantFault(t, err, anser.Unimplemented, anser.Refused)
	}
}

// A connection that has named as many methods as it can is replaced: no call fails, and calls in
// flight finish.
func TestMoreNamesThanOneConnectionHas(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		finish := make(chan struct{})
		s := serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Say": echo, "Echo.Later": echo,
			"Echo.Wait": func(_ context.Context, in *[]byte) (*[]byte, error) {
				<-finish
				return in, nil
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		long := anser.Go[[]byte](context.Background(), c, "Echo.Wait", text("long"), anser.Timeout(time.Hour))
		callNames(t, c)
		for _, name := range []string{"Echo.Say", "Echo.Later"} {
			if out, err := call(context.Background(), c, name, "x"); out != "x" || err != nil {
				t.Fatal(name, out, err)
			}
		}
		close(finish)
		if out, err := long.Wait(); err != nil || string(*out) != "long" {
			t.Fatal("the call in flight on the first connection:", err)
		}
		time.Sleep(time.Second)
		if st := s.Stats(); st.Conns != 1 || st.Accepted != 2 || len(st.Closed) != 0 {
			t.Fatalf("%d connections of %d, closed: %v; want one of two", st.Conns, st.Accepted, st.Closed)
		}
	})
}

// The same for the calls of a server to its client.
func TestMoreNamesThanASessionHas(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		sessions := make(chan *anser.Session, 1)
		s := anser.NewServer(silent, anser.OnSession(func(s *anser.Session) { sessions <- s }))
		run(t, s, network.Listen("a:1"))
		h := anser.NewServer(silent)
		t.Cleanup(func() { h.Close() })
		anser.Handle(h, "Echo.Say", echo)
		dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Handlers(h))
		back := (<-sessions).Client()
		callNames(t, back)
		if out, err := call(context.Background(), back, "Echo.Say", "x"); out != "x" || err != nil {
			t.Fatal(out, err)
		}
	})
}
