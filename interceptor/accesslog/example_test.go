package accesslog_test

import (
	"context"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/interceptor/accesslog"
)

func Example() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "duration" || a.Key == "peer" {
			return slog.Attr{} // these differ between runs
		}
		return a
	}})
	access, err := accesslog.New(slog.New(handler), accesslog.Slow(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	s := anser.NewServer(anser.Intercept(access), silent)
	anser.Handle(s, "Arith.Neg", func(_ context.Context, in *int) (*int, error) {
		if *in == 0 {
			return nil, anser.Errorf(anser.OutOfRange, "there is no negative of 0")
		}
		return new(-*in), nil
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
	for n := range 2 {
		anser.Call[int](context.Background(), c, "Arith.Neg", new(1-n))
	}
	// Output:
	// level=INFO msg=call side=server method=Arith.Neg code=ok attempt=0
	// level=INFO msg=call side=server method=Arith.Neg code="out of range" outcome=executed attempt=0
}
