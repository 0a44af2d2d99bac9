package anser_test

import (
	"context"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// An error about a size contains the number that was passed to MaxMessage, on whichever side it
// is found.
func TestSizeErrorsStateTheOption(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent, anser.MaxMessage(1000), anser.Deduplicate())
	anser.Handle(s, "Echo.Say", func(context.Context, *[]byte) (*[]byte, error) { return text(strings.Repeat("x", 200_000)), nil })
	anser.HandleStream(s, "Chat.Take", func(_ context.Context, st *anser.Stream[[]byte, []byte]) error {
		_, err := st.Recv()
		return err
	})
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.MaxMessage(2000))

	check := func(name string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "anser.MaxMessage") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	huge := text(strings.Repeat("x", 200_000))
	_, err := call(t.Context(), c, "Echo.Say", string(*huge))
	check("request", err, "over the server's limit of 1000 bytes for a message and 65536 for what goes with it")
	_, err = call(t.Context(), c, "Echo.Say", "")
	check("reply", err, "over the client's limit of 2000 bytes for a message and 65536 for what goes with it")
	_, err = call(t.Context(), c, "Echo.Say", "", anser.IdempotencyKey("a"))
	check("reply of a call with a key", err, "over the client's limit of 2000 bytes")
	st := open(t, t.Context(), c, "Chat.Take")
	check("message of a stream", st.Send(huge), "over the other side's limit of 1000 bytes for a message")
}
