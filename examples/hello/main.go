// Command hello is a minimal example: a server with one method, and a client that calls it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"github.com/anser-rpc/anser"
)

// Args and Reply are plain structs: they are encoded as MessagePack by default.
type (
	Args  struct{ A, B int }
	Reply struct{ C int }
)

// Mul is the contract. Both sides use the constant, so that the compiler checks them.
const Mul anser.Method[Args, Reply] = "Arith.Mul"

func mul(_ context.Context, in *Args) (*Reply, error) { return &Reply{C: in.A * in.B}, nil }

func run(out io.Writer) error {
	s := anser.NewServer()
	Mul.Handle(s, mul)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Serve(l)
	defer s.Close()

	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	reply, err := Mul.Call(context.Background(), c, &Args{A: 7, B: 8})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "7 * 8 = %d\n", reply.C)

	_, err = anser.Call[Reply](context.Background(), c, "Arith.Div", &Args{A: 7, B: 8})
	if e, ok := errors.AsType[*anser.Error](err); ok {
		fmt.Fprintf(out, "%s: %s (%s)\n", e.Code, e.Message, e.Outcome)
	}
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
