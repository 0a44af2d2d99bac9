package transporttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/anser-rpc/anser"
)

const talk anser.StreamMethod[[]byte, []byte] = "Test.Talk"

// serveStreams adds Test.Talk, which echoes its messages and sets a trailer. If its first message
// is "wait", it receives no more until its context ends.
func (s *service) serveStreams() {
	talk.Handle(s.Server, func(ctx context.Context, st *anser.Stream[[]byte, []byte]) error {
		for in, err := range st.All() {
			if err != nil {
				return err
			}
			if string(*in) == "wait" {
				s.waiting <- struct{}{}
				<-ctx.Done()
				s.over <- ctx.Err()
				return ctx.Err()
			}
			if err := st.Send(in); err != nil {
				return err
			}
		}
		return anser.SetTrailer(ctx, "end", "all was sent back")
	})
}

// stream sends messages of all sizes in both directions, next to a stream whose peer does not
// receive.
func stream(t *testing.T, transport Transport) {
	s := serve(t, transport, "")
	c := dial(t, transport, s.target)
	ctx, cancel := context.WithCancel(t.Context())
	stuck, err := talk.OpenWith(ctx, c, new([]byte("wait")))
	if err != nil {
		t.Fatal(err)
	}
	<-s.waiting
	full := make(chan error, 1)
	go func() { // until there is no credit left, and then until the end of ctx
		var err error
		for err == nil {
			err = stuck.Send(new(make([]byte, 32<<10)))
		}
		full <- err
	}()

	st, err := talk.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	message := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, i*i*i%100_000) }
	const messages = 200
	go func() {
		for i := range messages {
			if err := st.Send(new(message(i))); err != nil {
				t.Errorf("send message %d: %v", i, err)
				return
			}
		}
		st.CloseSend()
	}()
	for i := range messages {
		out, err := st.Recv()
		if err != nil {
			t.Fatalf("receive message %d: %v", i, err)
		}
		if !bytes.Equal(*out, message(i)) {
			t.Fatalf("message %d is different", i)
		}
	}
	if _, err := st.Recv(); err != io.EOF {
		t.Errorf("after the last message: %v", err)
	}
	if got := st.Trailer().Get("end"); got != "all was sent back" {
		t.Errorf("trailer %q", got)
	}
	say(t, c, "Test.Echo", []byte("calls go on beside streams"))

	cancel()
	if err := <-full; !errors.Is(err, context.Canceled) {
		t.Errorf("the sender that waits: %v", err)
	}
	if err := <-s.over; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler: %v", err)
	}
}
