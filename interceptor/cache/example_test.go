package cache_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/interceptor/cache"
)

func Example() {
	const price anser.Method[string, int] = "Shop.Price"
	kept, err := cache.New(
		cache.Method(string(price), time.Minute),
		cache.Stale(10*time.Second),
		cache.Negative(time.Second, anser.NotFound),
		cache.Vary("currency"),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer kept.Close()

	cents := 1999
	s := anser.NewServer(silent)
	price.Handle(s, func(context.Context, *string) (*int, error) { return new(cents), nil })
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()

	c, err := anser.Dial(l.Addr().String(), anser.Intercept(kept.Intercept))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ask := func() {
		reply, err := price.Call(context.Background(), c, new("shoe"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(*reply)
	}
	ask()
	cents = 1499
	ask()
	kept.ForgetRequest(string(price), new("shoe"))
	ask()
	fmt.Println(kept.Stats().Hits)
	// Output:
	// 1999
	// 1999
	// 1499
	// 1
}
