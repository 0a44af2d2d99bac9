// Command before is a server and a client with Connect.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

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
	mux := http.NewServeMux()
	connecthttp.Mount(mux, handlers)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := &http.Server{Handler: mux}
	go s.Serve(l)
	defer s.Close()

	transport := connecthttp.NewTransport(http.DefaultClient, "http://"+l.Addr().String())
	c := greetconnect.NewGreeterClient(connect.NewClient(transport))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := c.SayHello(ctx, &greet.HelloRequest{Name: "world"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.GetMessage())
}
