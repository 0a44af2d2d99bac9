package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/interceptor/ratelimit"
)

func Example() {
	limits, err := ratelimit.New(
		ratelimit.Server(ratelimit.Rate{PerSecond: 5000, Burst: 500}),
		ratelimit.Method("Report.Make", ratelimit.Rate{PerSecond: 0.1, Burst: 1}),
		ratelimit.Caller(ratelimit.ByAddress, ratelimit.Rate{PerSecond: 100, Burst: 20}),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer limits.Close()
	s := anser.NewServer(anser.Observe(limits.Observer()), silent)
	anser.Handle(s, "Report.Make", func(context.Context, *anser.None) (*anser.None, error) { return new(anser.None), nil })
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()

	c, err := anser.Dial(l.Addr().String(), anser.WithFailMode(anser.Failfast))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		_, err = anser.Call[anser.None](context.Background(), c, "Report.Make", new(anser.None))
		e, _ := errors.AsType[*anser.Error](err)
		fmt.Println(err == nil || e.RetryAfter > 0, errors.Is(err, anser.ResourceExhausted))
	}
	// Output:
	// true false
	// true true
}
