package thrift_test

import (
	"context"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/thrift"
	"github.com/anser-rpc/anser/codec/thrift/internal/testthrift"
)

// A call over TCP, with the codec chosen by the types, and named.
func TestCall(t *testing.T) {
	s := anser.NewServer(anser.Codecs(thrift.Binary(), thrift.Compact()))
	anser.Handle(s, "Echo.Say", func(_ context.Context, in *testthrift.Person) (*testthrift.Person, error) { return in, nil })
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
	for _, chosen := range []anser.DialOption{anser.Codecs(thrift.Binary()), anser.Codec(thrift.Compact())} {
		c, err := anser.Dial(l.Addr().String(), chosen)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		out, err := anser.Call[testthrift.Person](context.Background(), c, "Echo.Say", person())
		if err != nil || !(out.Home.Street == "Main") {
			t.Errorf("%+v, %v", out, err)
		}
	}
}
