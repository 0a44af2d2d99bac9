// Command async starts calls without waiting for them: futures, and messages without replies.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sync/atomic"

	"github.com/anser-rpc/anser"
)

// Args and Reply are the messages of Mul, Line is that of Log.
type (
	Args  struct{ A, B int }
	Reply struct{ C int }
	Line  struct{ Text string }
)

// The contracts. The type of Log means that a line arrives at most once, and that there is no
// reply.
const (
	Mul  anser.Method[Args, Reply] = "Arith.Mul"
	Slow anser.Method[Args, Reply] = "Arith.Slow"
	Log  anser.OnewayMethod[Line]  = "Log.Write"
)

func run(out io.Writer) error {
	var logged atomic.Int64
	all := make(chan struct{})
	s := anser.NewServer()
	Mul.Handle(s, func(_ context.Context, in *Args) (*Reply, error) { return &Reply{in.A * in.B}, nil })
	Slow.Handle(s, func(ctx context.Context, _ *Args) (*Reply, error) {
		<-ctx.Done() // until the caller cancels
		return nil, ctx.Err()
	})
	Log.Handle(s, func(context.Context, *Line) error {
		if logged.Add(1) == 100 {
			close(all)
		}
		return nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go s.Serve(l)
	defer s.Close()
	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	ctx := context.Background()
	if _, err := Mul.Call(ctx, c, &Args{1, 1}); err != nil { // connects
		return err
	}

	// A thousand calls in flight, without a goroutine per call.
	var futures []*anser.Future[Reply]
	for i := range 1000 {
		futures = append(futures, Mul.Go(ctx, c, &Args{i, 2}))
	}
	if err := anser.WaitAll(ctx, futures...); err != nil {
		return err
	}
	sum := 0
	for _, f := range futures {
		reply, err := f.Wait() // it has completed, so Wait returns at once
		if err != nil {
			return err
		}
		sum += reply.C
	}
	fmt.Fprintf(out, "1,000 calls, the sum of their replies is %d\n", sum)

	// Wait for the first of two calls; the other one is cancelled, which ends the context of its
	// handler.
	slow, fast := Slow.Go(ctx, c, &Args{}), Mul.Go(ctx, c, &Args{7, 8})
	first, err := anser.WaitAny(ctx, slow, fast)
	if err != nil {
		return err
	}
	slow.Cancel()
	_, err = slow.Wait()
	fmt.Fprintf(out, "future %d was the first; the other one: %s\n", first, anser.CodeOf(err))

	// Oneway: there is no reply to wait for.
	for i := range 100 {
		if err := Log.Send(ctx, c, &Line{fmt.Sprint("line ", i)}); err != nil {
			return err // nothing was sent
		}
	}
	<-all
	fmt.Fprintf(out, "%d lines have arrived\n", logged.Load())
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
