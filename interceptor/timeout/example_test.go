package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/interceptor/timeout"
)

func Example() {
	times, err := timeout.New(
		timeout.Default(5*time.Second), timeout.Max(30*time.Second),
		timeout.Method("Report.Make", time.Minute, 10*time.Minute),
		timeout.Method("Report.Peek", 10*time.Millisecond, 10*time.Millisecond),
	)
	if err != nil {
		log.Fatal(err)
	}
	s := anser.NewServer(anser.Intercept(times), silent)
	anser.Handle(s, "Report.Peek", func(ctx context.Context, _ *anser.None) (*anser.None, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()

	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	_, err = anser.Call[anser.None](context.Background(), c, "Report.Peek", new(anser.None))
	fmt.Println(errors.Is(err, anser.DeadlineExceeded))
	// Output: true
}
