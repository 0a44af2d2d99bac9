package telemetry_test

import (
	"context"
	"fmt"
	"log"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// One meter measures the servers and clients of a process.
func Example() {
	meter := telemetry.New()
	s := anser.NewServer(meter.Option())
	defer s.Close()
	anser.Handle(s, "Words.Length", func(_ context.Context, in *string) (*int, error) {
		if *in == "" {
			return nil, anser.Errorf(anser.InvalidArgument, "the word is empty")
		}
		n := len(*in)
		return &n, nil
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	c, err := anser.Dial(l.Addr().String(), meter.Option())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, word := range []string{"tea", "", "coffee"} {
		anser.Call[int](context.Background(), c, "Words.Length", &word) // the meter counts the error
	}

	for _, m := range meter.Snapshot().Methods {
		if !m.Server {
			calls, failed := m.Calls()
			fmt.Println(m.Name, calls, "calls,", failed, "failed")
		}
	}
	failures, _ := meter.Failures()
	fmt.Println(failures[0].Method, failures[0].Code)
	// Output:
	// Words.Length 3 calls, 1 failed
	// Words.Length invalid argument
}
