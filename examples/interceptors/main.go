// Command interceptors uses a chain of interceptors on each side of a call: an access log, a
// timeout for handlers, validation, a cache, and one call for many equal ones.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/interceptor/accesslog"
	"github.com/anser-rpc/anser/interceptor/cache"
	"github.com/anser-rpc/anser/interceptor/singleflight"
	"github.com/anser-rpc/anser/interceptor/timeout"
	"github.com/anser-rpc/anser/interceptor/validate"
)

type (
	Query struct{ Name string }
	Price struct{ Cents int }
)

// Validate is called by the interceptor of package validate.
func (q *Query) Validate() error {
	if q.Name == "" {
		return errors.New("name: is required")
	}
	return nil
}

const (
	Get  anser.Method[Query, Price] = "Prices.Get"
	Slow anser.Method[Query, Price] = "Prices.Slow"
)

func run(out io.Writer) error {
	plain := slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "duration" || a.Key == "peer" {
			return slog.Attr{} // these differ between runs
		}
		return a
	}}
	access, err := accesslog.New(slog.New(slog.NewTextHandler(out, &plain)), accesslog.Sample(0), accesslog.Slow(time.Minute))
	if err != nil {
		return err
	}
	times, err := timeout.New(timeout.Max(50 * time.Millisecond))
	if err != nil {
		return err
	}
	checks, err := validate.New()
	if err != nil {
		return err
	}
	var ran atomic.Int64
	s := anser.NewServer(anser.Intercept(access, times, checks))
	Get.Handle(s, func(context.Context, *Query) (*Price, error) {
		ran.Add(1)
		time.Sleep(20 * time.Millisecond)
		return &Price{1999}, nil
	})
	Slow.Handle(s, func(ctx context.Context, _ *Query) (*Price, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Serve(l)
	defer s.Close()

	kept, err := cache.New(cache.Method(string(Get), time.Minute))
	if err != nil {
		return err
	}
	defer kept.Close()
	one, err := singleflight.New(singleflight.Methods(string(Slow)))
	if err != nil {
		return err
	}
	defer one.Close()
	c, err := anser.Dial(l.Addr().String(), anser.Intercept(kept.Intercept, one.Intercept))
	if err != nil {
		return err
	}
	defer c.Close()

	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { Get.Call(context.Background(), c, &Query{"shoe"}) })
	}
	wg.Wait()
	fmt.Fprintf(out, "100 calls, %d of them ran\n", ran.Load())

	_, invalid := Get.Call(context.Background(), c, &Query{})
	_, late := Slow.Call(context.Background(), c, &Query{"shoe"})
	for _, err := range []error{invalid, late} {
		if e, ok := errors.AsType[*anser.Error](err); ok {
			fmt.Fprintf(out, "%s: %s (%s)\n", e.Code, e.Message, e.Outcome)
		}
	}
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
