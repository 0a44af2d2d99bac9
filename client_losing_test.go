package anser_test

import (
	"context"
	"net"

	"github.com/anser-rpc/anser/ansertest"
)

// losing dials, and gives the test a function per connection that breaks it.
func losing(network *ansertest.Network, conns chan<- func()) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, kind, address string) (net.Conn, error) {
		nc, err := network.Dial(ctx, kind, address)
		if err == nil {
			conns <- func() { nc.Close() }
		}
		return nc, err
	}
}
