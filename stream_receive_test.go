package anser_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/anser-rpc/anser"
)

// The receiver owns a large message: nothing that follows on any stream changes it, and changing it
// affects nothing else. It does not hold on to much more memory than it needs either.
func TestLargeMessagesAreTheReceiversOwn(t *testing.T) {
	const most = 16 << 20
	sizes := []int{most, most - 5, 9 << 20, most, 15 << 20, 1 << 20, most}
	filled := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, sizes[i]) }
	l := listen(t)
	serveStreams(t, l, map[string]streamHandler{
		"Chat.All": func(_ context.Context, st *bytesStream) error {
			for i := range sizes {
				msg := filled(i)
				if err := st.Send(&msg); err != nil {
					return err
				}
			}
			return nil
		},
	}, anser.MaxMessage(most))
	c := dial(t, l.Addr().String(), anser.MaxMessage(most), anser.Conns(1))

	var kept [][]byte
	for range 2 {
		st := open(t, t.Context(), c, "Chat.All")
		defer st.Close()
		for msg, err := range st.All() {
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, *msg)
			clear((*msg)[len(*msg):cap(*msg)]) // the receiver owns all of it
		}
	}
	if len(kept) != 2*len(sizes) {
		t.Fatalf("%d messages came, want %d", len(kept), 2*len(sizes))
	}
	for i, msg := range kept {
		if want := filled(i % len(sizes)); !bytes.Equal(msg, want) {
			t.Errorf("message %d of %d bytes is not what was sent: %d bytes", i, len(want), len(msg))
		}
		if cap(msg) > len(msg)+len(msg)/4 {
			t.Errorf("message %d of %d bytes has %d bytes of memory", i, len(msg), cap(msg))
		}
	}
}

// RecvInto uses the memory of the given message if that is large enough.
func TestRecvIntoUsesRoomForLargeMessages(t *testing.T) {
	const size = 16 << 20
	l := listen(t)
	serveStreams(t, l, map[string]streamHandler{"Chat.Talk": talk}, anser.MaxMessage(size))
	c := dial(t, l.Addr().String(), anser.MaxMessage(size))
	st := open(t, t.Context(), c, "Chat.Talk")
	defer st.Close()
	room := make([]byte, size)
	for i := range 3 {
		sent := bytes.Repeat([]byte{byte('a' + i)}, size)
		got := room
		if err := errors.Join(st.Send(&sent), st.RecvInto(&got)); err != nil {
			t.Fatal(err)
		}
		if &got[0] != &room[0] || !bytes.Equal(got, sent) {
			t.Errorf("message %d has other memory, or is another one", i)
		}
	}
	if err := st.CloseSend(); err != nil {
		t.Fatal(err)
	}
	got := room
	if err := st.RecvInto(&got); !errors.Is(err, io.EOF) || len(got) != size {
		t.Errorf("at the end: %v, and %d bytes", err, len(got))
	}
}
