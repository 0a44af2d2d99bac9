package ansertest_test

import (
	"context"
	"fmt"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

func Example() {
	network := new(ansertest.Network)
	server := anser.NewServer()
	anser.Handle(server, "Greeter.Hello", func(ctx context.Context, name *[]byte) (*[]byte, error) {
		reply := append([]byte("hello, "), *name...)
		return &reply, nil
	})
	go server.Serve(network.Listen("greeter:1"))
	defer server.Close()

	client, err := anser.Dial("greeter:1", anser.Dialer(network.Dial))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	name := []byte("Ada")
	reply, err := anser.Call[[]byte](context.Background(), client, "Greeter.Hello", &name)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(*reply))
	// Output: hello, Ada
}
