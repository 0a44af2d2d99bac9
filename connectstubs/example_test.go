package connectstubs_test

import (
	"context"
	"fmt"
	"log"

	"connectrpc.com/connect/v2"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/connectstubs"
	pb "github.com/anser-rpc/anser/connectstubs/internal/pingpb"
	"github.com/anser-rpc/anser/connectstubs/internal/pingpb/pingpbconnect"
)

func Example() {
	handlers := connect.NewServer()
	pingpbconnect.RegisterPingServiceHandler(handlers, numbers{})
	server := anser.NewServer()
	if err := connectstubs.Mount(server, handlers); err != nil { // was: connecthttp.Mount(mux, handlers)
		log.Fatal(err)
	}
	network := new(ansertest.Network)
	go server.Serve(network.Listen("test:1"))
	defer server.Close()

	conn, err := anser.Dial("test:1", anser.Dialer(network.Dial))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	transport := connectstubs.NewTransport(conn) // was: connecthttp.NewTransport(…)
	client := pingpbconnect.NewPingServiceClient(connect.NewClient(transport))
	reply, err := client.Ping(context.Background(), &pb.PingRequest{Text: "hello"})
	fmt.Println(reply.GetText(), err)
	// Output: hello <nil>
}
