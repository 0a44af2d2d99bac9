package gob_test

import (
	"context"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/gob"
)

// A call over TCP, with the codec that an option names.
func TestCall(t *testing.T) {
	s := anser.NewServer(anser.Codecs(gob.New()))
	anser.Handle(s, "Echo.Say", func(_ context.Context, in *document) (*document, error) { return in, nil })
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
	for _, chosen := range []anser.DialOption{anser.Codec(gob.New())} {
		c, err := anser.Dial(l.Addr().String(), chosen)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		out, err := anser.Call[document](context.Background(), c, "Echo.Say", newDocument())
		if err != nil || !(out.Any == any(shape{3})) {
			t.Errorf("%+v, %v", out, err)
		}
	}
}
