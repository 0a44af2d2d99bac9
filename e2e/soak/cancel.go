package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
)

// cancelled makes calls of one server and cancels nearly all of them.
func cancelled(ctx context.Context, o options, out io.Writer) (bool, error) {
	if err := warm(); err != nil {
		return false, err
	}
	start, err := measure()
	if err != nil {
		return false, err
	}
	c := &cancels{o: o, out: out, tally: new(tally), began: time.Now()}
	if err := c.run(ctx); err != nil {
		return false, err
	}
	end, err := settle(start)
	if err != nil {
		return false, err
	}
	return c.verdict(start, end), nil
}

// cancels is the mode --cancel.
type cancels struct {
	o      options
	out    io.Writer
	tally  *tally
	made   atomic.Int64
	began  time.Time
	server anser.ServerStats
}

func (c *cancels) run(ctx context.Context) (err error) {
	s := anser.NewServer(silent, anser.NoSignals())
	h := handlers{c.tally, newMail(), s}
	if err := h.register(); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		s.Close()
		if e := <-served; !errors.Is(e, anser.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}()
	// A server closes a connection with more than 10,000 cancels a second for long.
	client, err := anser.Dial(l.Addr().String(), silent, anser.Conns(8), anser.Timeout(longest))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var callers, reporter sync.WaitGroup
	for i := range c.o.callers * c.o.clients {
		k := &caller{person: &person{client: client, tally: c.tally}, r: rand.New(rand.NewPCG(c.o.seed, uint64(i)))}
		callers.Go(func() {
			for ctx.Err() == nil && c.made.Add(1) <= c.o.calls {
				k.cancelOne()
			}
		})
	}
	reporter.Go(func() {
		for {
			select {
			case <-time.After(c.o.report):
				c.line()
			case <-ctx.Done():
				return
			}
		}
	})
	callers.Wait()
	stop()
	reporter.Wait()
	return c.atRest(s)
}

// atRest waits until the server has nothing to do any more.
func (c *cancels) atRest(s *anser.Server) error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c.server = s.Stats()
		if c.server.InFlight == 0 && c.server.Streams == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d cancelled calls and %d cancelled streams are still open on the server", c.server.InFlight, c.server.Streams)
		}
	}
}

func (c *cancels) line() {
	now, err := measure()
	if err != nil {
		return
	}
	fmt.Fprintf(c.out, "%6s  %d calls, %d cancelled, %d failures; %d goroutines, %d descriptors, heap %s, RSS %s\n",
		time.Since(c.began).Round(time.Second), c.tally.calls(), c.tally.cancelled.Load(), c.tally.failures.Load(),
		now.goroutines, now.fds, mib(now.heap), mib(now.rss))
}

func (c *cancels) verdict(start, end held) bool {
	y := c.tally
	fmt.Fprintf(c.out, "\n%d calls in %s: %d cancelled, %d answered, %d lost; the server ran %d handlers to their cancel\n",
		y.calls(), time.Since(c.began).Round(time.Second), y.cancelled.Load(), y.done[unary].Load()+y.done[future].Load()+y.done[stream].Load(), y.lost.Load(), c.server.Cancelled)
	problems := leaks(start, end)
	if n := y.lost.Load(); n > 0 || len(c.server.Closed) > 0 {
		problems = append(problems, fmt.Sprintf("%d calls were lost though nothing was cut; the server closed connections: %v", n, c.server.Closed))
	}
	if n := y.failures.Load(); n > 0 {
		problems = append(problems, fmt.Sprintf("%d failures, the first ones:", n))
		problems = append(problems, y.first...)
	}
	fmt.Fprintf(c.out, "%d goroutines and %d descriptors, %d and %d at the start\n", end.goroutines, end.fds, start.goroutines, start.fds)
	if len(problems) == 0 {
		fmt.Fprintln(c.out, "PASS: no failure, nothing left")
		return true
	}
	fmt.Fprintln(c.out, "FAIL")
	for _, p := range problems {
		fmt.Fprintf(c.out, "  %s\n", p)
	}
	return false
}

// cancelOne makes a call, and cancels it at a random moment: most likely while it runs.
func (k *caller) cancelOne() {
	id := newID()
	in := &Parcel{ID: id, Data: fill(id, asked, k.r.IntN(300)), Do: Wish{Want: k.r.IntN(300)}}
	if k.r.IntN(4) == 0 {
		in.Do.Hold = time.Duration(k.r.IntN(500)) * time.Microsecond
	}
	may := expected{gaveUp: true}
	switch n := k.r.IntN(16); {
	case n < 8: // a future that another goroutine may end at the same time
		f := echo.Go(context.Background(), k.client, in)
		for range k.r.IntN(6) {
			runtime.Gosched()
		}
		f.Cancel()
		out, err := f.Wait()
		k.compare(future, in, out, err, may)
	case n < 11:
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(k.r.IntN(1000))*time.Microsecond)
		defer cancel()
		out, err := echo.Call(ctx, k.client, in)
		k.compare(unary, in, out, err, may)
	case n < 14:
		ctx, cancel := context.WithCancel(context.Background())
		t := time.AfterFunc(time.Duration(k.r.IntN(1000))*time.Microsecond, cancel)
		out, err := echoAgain.Call(ctx, k.client, in)
		t.Stop()
		cancel()
		k.compare(unary, in, out, err, may)
	case n < 15:
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(k.r.IntN(1000))*time.Microsecond)
		defer cancel()
		k.cancelStream(ctx, in, may)
	default: // one that is answered, between all the others
		out, err := echo.Call(context.Background(), k.client, in)
		k.compare(unary, in, out, err, expected{})
	}
}

// cancelStream opens a stream and asks for answers until ctx ends.
func (k *caller) cancelStream(ctx context.Context, in *Parcel, may expected) {
	st, err := talk.OpenWith(ctx, k.client, in)
	if err != nil {
		k.tally.judge(stream, err, may)
		return
	}
	defer st.Close()
	for {
		out, err := st.Recv()
		if err != nil {
			k.tally.judge(stream, err, may)
			return
		}
		if err := out.answers(in); err != nil {
			k.tally.fail("stream", err)
			return
		}
		next := *in
		next.Seq++
		in = &next
		if err := st.Send(in); err != nil {
			k.tally.judge(stream, err, may)
			return
		}
	}
}
