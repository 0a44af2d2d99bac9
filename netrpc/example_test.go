package netrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	rpc "github.com/anser-rpc/anser/netrpc"
)

// Except for its imports this is a typical program for net/rpc.
func Example() {
	rpc.Register(new(Arith))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		rpc.Accept(l)
	}()

	client, err := rpc.Dial("tcp", l.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	var reply Reply
	err = client.Call("Arith.Mul", &Args{7, 8}, &reply)
	fmt.Println(reply.C, err)
	call := <-client.Go("Arith.Div", &Args{7, 0}, &reply, nil).Done
	fmt.Println(call.Error)
	client.Close()
	l.Close()
	<-served
	// Output:
	// 56 <nil>
	// divide by zero
}

// A call with a timeout.
func ExampleClient_CallContext() {
	s := rpc.NewServer()
	s.RegisterFunc("Wait", func(ctx context.Context, _ *Args) (*Reply, error) {
		<-ctx.Done() // the connection was lost, or the server has shut down
		return nil, ctx.Err()
	})
	one, two := net.Pipe()
	go s.ServeConn(one)
	defer s.Close()
	client := rpc.NewClient(two)
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	err := client.CallContext(ctx, "Wait", &Args{}, new(Reply))
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output: true
}

// Old and new clients call the same method by different names.
func ExampleServer_DeprecatedAlias() {
	s := rpc.NewServer()
	s.RegisterFunc("math.mul", new(Arith).Mul)
	s.DeprecatedAlias("Arith.Mul", "math.mul")
	one, two := net.Pipe()
	go s.ServeConn(one)
	defer s.Close()
	client := rpc.NewClient(two)
	defer client.Close()

	var reply Reply
	err := client.Call("Arith.Mul", &Args{7, 8}, &reply)
	fmt.Println(reply.C, err)
	for _, m := range s.Stats().Methods {
		fmt.Println(m.Name, m.Calls, m.Aliases[0].Name, m.Aliases[0].Calls)
	}
	// Output:
	// 56 <nil>
	// math.mul 1 Arith.Mul 1
}
