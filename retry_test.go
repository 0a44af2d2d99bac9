package anser_test

import (
	"context"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

func TestDurationOfEachAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				time.Sleep(time.Second)
				return nil, anser.Aborted
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		_, err := call(context.Background(), c, "Echo.Say", "hello", anser.Idempotent(), anser.RetryOn(anser.Aborted))
		e := wantFault(t, err, anser.Aborted, anser.Executed)
		if len(e.Attempts) != 3 {
			t.Fatalf("%d attempts, want 3", len(e.Attempts))
		}
		for _, a := range e.Attempts {
			if d := a.Duration.Round(100 * time.Millisecond); d != time.Second {
				t.Errorf("an attempt took %v, want 1 s", a.Duration)
			}
		}
	})
}
