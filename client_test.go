package anser_test

import (
	"context"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// A call that was made inside a bubble and one outside share nothing that belongs to the bubble.
func TestCallsInAndOutOfBubbles(t *testing.T) {
	round := func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		for range 50 {
			if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
				t.Fatal(out, err)
			}
		}
	}
	for range 3 {
		t.Run("in", func(t *testing.T) { bubble(t, round) })
		t.Run("out", func(t *testing.T) { round(t, new(ansertest.Network)) })
	}
}
