package gojson_test

import (
	"context"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/gojson"
)

// A call over TCP, with the codec chosen by the types, and named.
func TestCall(t *testing.T) {
	s := anser.NewServer(anser.Codecs(gojson.New()))
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
	for _, chosen := range []anser.DialOption{anser.Codecs(gojson.New()), anser.Codec(gojson.New())} {
		c, err := anser.Dial(l.Addr().String(), chosen)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		out, err := anser.Call[document](context.Background(), c, "Echo.Say", newDocument())
		if err != nil || !(out.Large == 1<<64-1) {
			t.Errorf("%+v, %v", out, err)
		}
	}
}
