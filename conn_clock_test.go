package anser_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// The clock of a bubble begins in the year 2000, long before the process did. Times before that
// must not look like "never".
func TestClockOfABubble(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		inside, release := make(chan struct{}), make(chan struct{})
		s := serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				inside <- struct{}{}
				<-release
				return in, nil
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		first := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("a"))
		<-inside
		if n := s.Stats().InFlight; n != 0 {
			t.Errorf("a handler that never ran before is not run on the goroutine that reads: %d in flight", n)
		}
		second := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("b"))
		<-inside
		synctest.Wait()
		if n := s.Stats().Conns; n != 2 {
			t.Errorf("%d connections under load, want 2", n)
		}
		close(release)
		for _, f := range []*anser.Future[[]byte]{first, second} {
			if _, err := f.Wait(); err != nil {
				t.Error(err)
			}
		}
	})
}
