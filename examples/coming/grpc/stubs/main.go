// Command stubs is the same server and client, with the generated code of gRPC over Anser.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	pb "google.golang.org/grpc/examples/helloworld/helloworld"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/grpcstubs"
)

type greeter struct{ pb.UnimplementedGreeterServer }

func (greeter) SayHello(ctx context.Context, in *pb.HelloRequest) (*pb.HelloReply, error) {
	return &pb.HelloReply{Message: "Hello " + in.GetName()}, nil
}

func main() {
	s := anser.NewServer()
	pb.RegisterGreeterServer(grpcstubs.NewRegistrar(s), greeter{}) // was: grpc.NewServer()
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
	c := pb.NewGreeterClient(grpcstubs.NewConn(conn)) // was: grpc.NewClient(…)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := c.SayHello(ctx, &pb.HelloRequest{Name: "world"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.GetMessage())
}
