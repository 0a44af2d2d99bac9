package httpconnect_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/httpconnect"
)

// A net/http server and an Anser server on one port.
func Example() {
	const greet anser.Method[string, string] = "Hello.Greet"
	s := anser.NewServer()
	greet.Handle(s, func(_ context.Context, name *string) (*string, error) { return new("hello " + *name), nil })

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	h := httpconnect.NewHandler("http://" + l.Addr().String())
	go s.Serve(h)
	defer s.Close()
	mux := http.NewServeMux()
	mux.Handle(httpconnect.Path, h)
	web := &http.Server{Handler: mux}
	go web.Serve(l)
	defer web.Close()

	c, err := anser.Dial("http://"+l.Addr().String(), httpconnect.HTTP())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	reply, err := greet.Call(context.Background(), c, new("goose"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*reply)
	// Output: hello goose
}
