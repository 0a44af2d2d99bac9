package singleflight_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/interceptor/singleflight"
)

func Example() {
	const price anser.Method[string, int] = "Shop.Price"
	g, err := singleflight.New(singleflight.Methods(string(price)), singleflight.Ignore("request-id"))
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()

	s := anser.NewServer(silent)
	price.Handle(s, func(context.Context, *string) (*int, error) { return new(1999), nil })
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()

	c, err := anser.Dial(l.Addr().String(), anser.Intercept(g.Intercept))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := price.Call(context.Background(), c, new("shoe")); err != nil {
				log.Fatal(err)
			}
		})
	}
	wg.Wait()
	fmt.Println(g.Stats().Calls, "calls are answered; Joined tells how many of them were not sent")
	// Output: 10 calls are answered; Joined tells how many of them were not sent
}
