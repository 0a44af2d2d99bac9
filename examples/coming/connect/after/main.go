// Command after is the same server and client, with the generated code of Connect over Anser.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/connectstubs"
	"github.com/anser-rpc/anser/examples/coming/connect/greet"
	"github.com/anser-rpc/anser/examples/coming/connect/greet/greetconnect"
)

type greeter struct{}

func (greeter) SayHello(ctx context.Context, in *greet.HelloRequest) (*greet.HelloReply, error) {
	return &greet.HelloReply{Message: "Hello " + in.GetName()}, nil
}

func main() {
	handlers := connect.NewServer()
	greetconnect.RegisterGreeterHandler(handlers, greeter{})
	s := anser.NewServer()
	if err := connectstubs.Mount(s, handlers); err != nil { // was: connecthttp.Mount(mux, handlers)
		log.Fatal(err)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()

	conn, err := anser.Dial(l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	transport := connectstubs.NewTransport(conn) // was: connecthttp.NewTransport(…)
	c := greetconnect.NewGreeterClient(connect.NewClient(transport))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := c.SayHello(ctx, &greet.HelloRequest{Name: "world"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.GetMessage())
}
