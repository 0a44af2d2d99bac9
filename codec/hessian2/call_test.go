package hessian2_test

import (
	"context"
	"testing"

	"github.com/anser-rpc/anser"
)

// A call over TCP, with the codec chosen by the types, and named.
func TestCall(t *testing.T) {
	s := anser.NewServer(anser.Codecs(newCodec()))
	anser.Handle(s, "Echo.Say", func(_ context.Context, in *user) (*user, error) { return in, nil })
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
	for _, chosen := range []anser.DialOption{anser.Codecs(newCodec()), anser.Codec(newCodec())} {
		c, err := anser.Dial(l.Addr().String(), chosen)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		out, err := anser.Call[user](context.Background(), c, "Echo.Say", newUser())
		if err != nil || !(out.Friends[1].Home.Street == "Side") {
			t.Errorf("%+v, %v", out, err)
		}
	}
}
