// Package calltest calls a method over TCP with a codec, like an application. It is separate from
// the suite in codectest because it imports package anser, which codecs do not need.
package calltest

import (
	"context"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
)

// Run calls a method that echoes its request, with the options of each client in turn, on a server
// with these codecs, and checks the reply with same.
func Run[T any](t *testing.T, codecs []codec.Codec, clients []anser.DialOption, in *T, same func(out *T) bool) {
	t.Helper()
	s := anser.NewServer(anser.Codecs(codecs...))
	if err := anser.Handle(s, "Echo.Say", func(_ context.Context, in *T) (*T, error) { return in, nil }); err != nil {
		t.Fatal(err)
	}
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
	for _, chosen := range clients {
		c, err := anser.Dial(l.Addr().String(), chosen)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if out, err := anser.Call[T](context.Background(), c, "Echo.Say", in); err != nil || !same(out) {
			t.Errorf("%+v, %v", out, err)
		}
	}
}
