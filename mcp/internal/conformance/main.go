// Conformance is a server with tools for the conformance suite of the Model Context Protocol. It
// prints its address, and serves until its input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/mcp"
	"github.com/anser-rpc/anser/protocols"
)

type (
	none  struct{}
	count struct{ N int }
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.New(mcp.Options{Allow: []string{"test.*"}, Resources: true}))
	s := anser.NewServer(protocols.All(protocols.Handler(mux)))
	anser.Handle(s, "test.simple.text", func(context.Context, *none) (*string, error) {
		text := "This is a simple text response for testing."
		return &text, nil
	})
	anser.Handle(s, "test.error.handling", func(context.Context, *none) (*none, error) {
		return nil, anser.Errorf(anser.Internal, "This tool intentionally returns an error for testing")
	})
	err := s.HandleDynamic([]anser.DynamicMethod{{
		Name: "test.tool.with.progress", Request: reflect.TypeFor[none](), Reply: reflect.TypeFor[count](), ServerStream: true,
		Stream: func(_ context.Context, st *anser.DynamicStream) error {
			if err := st.Recv(new(none)); err != nil {
				return err
			}
			for _, n := range []int{0, 50, 100} {
				if err := st.Send(&count{n}); err != nil {
					return err
				}
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		},
	}})
	if err != nil {
		return err
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin) //nits:ignore errcheck the end of the input is all that matters
		s.Close()
	}()
	return s.Serve(l)
}
