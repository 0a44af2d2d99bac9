// Command after is the same server and client with Anser, and with the same messages.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	pb "google.golang.org/grpc/examples/helloworld/helloworld"

	"github.com/anser-rpc/anser"
)

// SayHello is the contract that server and client share.
const SayHello anser.Method[pb.HelloRequest, pb.HelloReply] = "helloworld.Greeter.SayHello"

func sayHello(ctx context.Context, in *pb.HelloRequest) (*pb.HelloReply, error) {
	return &pb.HelloReply{Message: "Hello " + in.GetName()}, nil
}

func main() {
	s := anser.NewServer()
	if err := SayHello.Handle(s, sayHello); err != nil {
		log.Fatal(err)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()

	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := SayHello.Call(ctx, c, &pb.HelloRequest{Name: "world"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.GetMessage())
}
