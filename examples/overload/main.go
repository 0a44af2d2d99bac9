// Command overload shows a server that does what it can and refuses the rest: a limit for a
// method, calls that wait in the order of their priority, and a rate limit per caller.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/interceptor/ratelimit"
)

// Job names a job; Done reports its completion.
type (
	Job  struct{ Name string }
	Done struct{ Name string }
)

func run(out io.Writer) error {
	perCaller := ratelimit.Rate{PerSecond: 1e-3, Burst: 7} // so low that no token is refilled during the example
	rates, err := ratelimit.New(ratelimit.Caller(ratelimit.ByMetadata("tenant"), perCaller))
	if err != nil {
		return err
	}
	defer rates.Close()
	s := anser.NewServer(anser.Observe(rates.Observer()))
	release := make(chan struct{})
	work := func(_ context.Context, in *Job) (*Done, error) {
		<-release
		fmt.Fprintln(out, "ran:", in.Name)
		return &Done{in.Name}, nil
	}
	// One call at a time: a limit between 1 and 1 does not adapt, so that the output is always the
	// same. AdaptiveLimit(0, 0) finds the number by itself.
	anser.Handle(s, "Work.Do", work, anser.AdaptiveLimit(1, 1), anser.MaxQueueTime(time.Minute), anser.MaxInFlight(4))
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Serve(l)
	defer s.Close()
	c, err := anser.Dial(l.Addr().String(), anser.WithFailMode(anser.Failfast))
	if err != nil {
		return err
	}
	defer c.Close()

	ctx := anser.WithMetadata(context.Background(), anser.Metadata{"tenant": "a"})
	limits := func() anser.LimitStats { return s.Stats().Methods["Work.Do"].Limits }
	var calls []*anser.Future[Done]
	for i, p := range []anser.Priority{anser.Normal, anser.Sheddable, anser.Normal, anser.Critical} {
		name := []string{"first", "prefetch", "normal", "checkout"}[i]
		calls = append(calls, anser.Go[Done](anser.WithPriority(ctx, p), c, "Work.Do", &Job{name}))
		for limits().Running+limits().Waiting <= int64(i) {
			time.Sleep(time.Millisecond)
		}
	}
	_, err = anser.Call[Done](ctx, c, "Work.Do", &Job{"one more"})
	tell(out, err)
	close(release)
	for _, f := range calls {
		if _, err := f.Wait(); err != nil {
			return err
		}
	}
	// Four calls of the tenant ran; three more are within its burst.
	for range 4 {
		_, err = anser.Call[Done](ctx, c, "Work.Do", &Job{"again"})
	}
	tell(out, err)
	fmt.Fprintln(out, "shed by priority:", limits().Shed)
	return nil
}

func tell(out io.Writer, err error) {
	if e, ok := errors.AsType[*anser.Error](err); ok {
		fmt.Fprintf(out, "%s: %s (%s, retry after a time: %v)\n", e.Code, e.Message, e.Outcome, e.RetryAfter > 0)
	}
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
