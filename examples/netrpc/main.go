// Command netrpc is a program written for net/rpc, with only its import line changed. Its old
// features are followed by new ones.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	stock "net/rpc"
	"os"
	"time"

	rpc "github.com/anser-rpc/anser/netrpc"
)

// Args and Quotient are the messages of Arith, the service of net/rpc's own documentation.
type (
	Args     struct{ A, B int }
	Quotient struct{ Quo, Rem int }
	Arith    int
)

// Multiply has the form required by net/rpc.
func (*Arith) Multiply(args *Args, reply *int) error {
	*reply = args.A * args.B
	return nil
}

// Divide panics if B is 0, which would end the process with net/rpc.
func (*Arith) Divide(args *Args, quo *Quotient) error {
	*quo = Quotient{args.A / args.B, args.A % args.B}
	return nil
}

// Sleep also takes a context, which ends when its client disconnects.
func (*Arith) Sleep(ctx context.Context, _ *Args) (*Quotient, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func run(out io.Writer) error {
	s := rpc.NewServer()
	s.Logger = slog.New(slog.DiscardHandler) // it receives the stack of the panic
	if err := s.Register(new(Arith)); err != nil {
		return err
	}
	if err := s.DeprecatedAlias("Arith.Mul", "Arith.Multiply"); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Accept(l)

	client, err := rpc.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer client.Close()
	var product int
	if err := client.Call("Arith.Multiply", &Args{7, 8}, &product); err != nil {
		return err
	}
	fmt.Fprintln(out, "7 * 8 =", product)
	quotient := new(Quotient)
	call := <-client.Go("Arith.Divide", &Args{17, 8}, quotient, nil).Done
	fmt.Fprintln(out, "17 / 8 =", *quotient, call.Error)

	err = client.Call("Arith.Divide", &Args{17, 0}, quotient)
	fmt.Fprintln(out, "a panic fails its call:", err != nil)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err = client.CallContext(ctx, "Arith.Sleep", &Args{}, quotient)
	fmt.Fprintln(out, "a call with an end:", errors.Is(err, context.DeadlineExceeded))

	// An unchanged client of net/rpc, which uses an old name of the method.
	old, err := stock.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer old.Close()
	if err := old.Call("Arith.Mul", &Args{6, 7}, &product); err != nil {
		return err
	}
	fmt.Fprintln(out, "6 * 7 =", product)
	for _, m := range s.Stats().Methods {
		for _, a := range m.Aliases {
			fmt.Fprintf(out, "%s was called %d time as %s\n", m.Name, a.Calls, a.Name)
		}
	}
	client.Close() // ends the context of Sleep
	return s.Shutdown(context.Background())
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
