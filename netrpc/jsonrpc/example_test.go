package jsonrpc_test

import (
	"errors"
	"fmt"
	"net"

	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// One server answers clients of JSON-RPC 1.0 and 2.0, each in its own version.
func Example() {
	s := netrpc.NewServer()
	s.Register(Arith{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go s.Serve(l, jsonrpc.NewServerCodec)
	defer s.Close()

	old, err := jsonrpc.Dial("tcp", l.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer old.Close()
	var reply Reply
	err = old.Call("Arith.Add", &Args{7, 8}, &reply)
	fmt.Println(reply.C, err)

	c, err := jsonrpc.Dial2("tcp", l.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	err = c.Call("Arith.Sub", &Args{7, 8}, &reply)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		fmt.Println(e.Code, e.Message)
	}
	// Output:
	// 15 <nil>
	// -32601 rpc: can't find method Arith.Sub
}
