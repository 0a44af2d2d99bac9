package anser_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

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
