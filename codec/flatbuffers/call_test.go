package flatbuffers_test

import (
	"context"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/flatbuffers"
	"github.com/anser-rpc/anser/codec/flatbuffers/internal/testfb"
)

// A call over TCP, with the codec chosen by the types, and named.
func TestCall(t *testing.T) {
	s := anser.NewServer(anser.Codecs(newCodec(t, flatbuffers.Borrow())))
	anser.Handle(s, "Echo.Say", func(_ context.Context, in *testfb.Person) (*testfb.Person, error) { return in, nil })
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		<-served
	})
	for _, chosen := range []anser.DialOption{anser.Codecs(newCodec(t, flatbuffers.Borrow())), anser.Codec(newCodec(t, flatbuffers.Borrow()))} {
		c, err := anser.Dial(l.Addr().String(), chosen)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		out, err := anser.Call[testfb.Person](context.Background(), c, "Echo.Say", table())
		if err != nil || !equal(out, object()) {
			t.Errorf("%+v, %v", out, err)
		}
	}
}
