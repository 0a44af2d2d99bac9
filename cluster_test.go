package anser_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/registry"
)

// A call that waits for a connection to an instance goes elsewhere when the instance moves.
func TestInstanceMovesWhileACallWaitsForItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("new:1"), map[string]handler{"Echo.Say": echo})
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			if address == "old:1" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return network.Dial(ctx, kind, address)
		}))
		f.instances(registry.Instance{Service: "arith", ID: "one", Address: "old:1"})
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello"))
		synctest.Wait()
		f.instances(registry.Instance{Service: "arith", ID: "one", Address: "new:1"})
		if out, err := reply.Wait(); err != nil || string(*out) != "hello" {
			t.Fatal(err)
		}
	})
}

// conns counts the connections that are open at the server's side.
func conns(s *anser.Server) int { return s.Stats().Conns }

// A list that names an instance twice, as a registry should not, costs nothing.
func TestInstanceListedTwice(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		other := serve(t, network.Listen("b:1"), map[string]handler{"Echo.Say": echo})
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial))
		f.list("a:1", "a:1", "b:1")
		for range 20 {
			if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(c.Status().Instances); n != 2 {
			t.Errorf("%d instances, want 2", n)
		}
		f.list("b:1")
		synctest.Wait()
		time.Sleep(time.Second) // until the instance's last calls would be over
		if n := conns(s); n != 0 {
			t.Errorf("%d connections to an instance that is gone", n)
		}
		if conns(other) == 0 {
			t.Error("no connection to the instance that is left")
		}
	})
}

// An instance that was held back because too many went at once goes when the registry says that it
// wants no calls.
func TestHeldInstanceIsWithdrawn(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, a := range []string{"a:1", "b:1", "c:1"} {
			serve(t, network.Listen(a), map[string]handler{"Echo.Say": echo})
		}
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial))
		f.list("a:1", "b:1", "c:1")
		f.list("a:1")
		if n := len(c.Status().Instances); n != 3 {
			t.Fatalf("%d instances, want 3", n)
		}
		f.instances(registry.Instance{Service: "arith", Address: "a:1"},
			registry.Instance{Service: "arith", Address: "b:1", State: registry.Draining})
		var left []string
		for _, in := range c.Status().Instances {
			left = append(left, in.Address)
		}
		if !slices.Equal(left, []string{"a:1", "c:1"}) {
			t.Error(left)
		}
	})
}
