package anser_test

import (
	"context"
	"sync"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// However many calls begin at once, there are as many connections as the option says.
func TestConnsUnderLoad(t *testing.T) {
	for range 100 {
		network := new(ansertest.Network)
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 10 {
					if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		c.Close()
		if n := s.Stats().Accepted; n > 2 {
			t.Fatalf("%d connections, want 2 at most", n)
		}
		s.Close()
	}
}
