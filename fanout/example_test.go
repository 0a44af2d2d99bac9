package fanout_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/fanout"
)

// All instances of a cache drop an entry. Success at two of them is enough.
func ExampleBroadcast() {
	type Entry struct{ Key string }
	var addresses string
	for range 3 {
		s := anser.NewServer()
		anser.Handle(s, "Cache.Drop", func(context.Context, *Entry) (*anser.None, error) { return new(anser.None), nil })
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		go s.Serve(l)
		defer s.Close()
		addresses += "," + l.Addr().String()
	}
	c, err := anser.Dial("tcp://" + addresses[1:])
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	results, err := fanout.Broadcast[anser.None](context.Background(), c, "Cache.Drop", &Entry{"k"}, fanout.AtLeast(2))
	fmt.Println(len(results), err)
	// Output: 3 <nil>
}
