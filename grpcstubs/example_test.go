package grpcstubs_test

import (
	"context"
	"fmt"
	"log"

	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/grpcstubs"
)

type service struct {
	pb.UnimplementedTestServiceServer
}

func (service) UnaryCall(_ context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{Username: "ann"}, nil
}

func Example() {
	network := new(ansertest.Network)
	server := anser.NewServer()
	pb.RegisterTestServiceServer(grpcstubs.NewRegistrar(server), service{})
	go server.Serve(network.Listen("test:1"))
	defer server.Close()

	conn, err := anser.Dial("test:1", anser.Dialer(network.Dial))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	client := pb.NewTestServiceClient(grpcstubs.NewConn(conn))
	reply, err := client.UnaryCall(context.Background(), new(pb.SimpleRequest))
	fmt.Println(reply.GetUsername(), err)
	// Output: ann <nil>
}
