// Command resilience calls three instances, one of which is slow and one unavailable: with a
// second attempt that is faster than the slow one, with a budget that bounds retries, with a key
// that lets a payment be sent twice and run once, and in the background when an instance becomes
// available.
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
	"strings"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/fanout"
)

type (
	Order   struct{ Item string }
	Receipt struct{ Number int }
)

// The methods of an instance.
const (
	Find anser.Method[Order, Receipt] = "Shop.Find"
	Pay  anser.Method[Order, Receipt] = "Shop.Pay"
	Fail anser.Method[Order, Receipt] = "Shop.Fail"
)

var quiet = anser.Logger(slog.New(slog.DiscardHandler)) // errors are expected here

var failures atomic.Int64

// serve runs an instance.
func serve(address string, slow bool) (*anser.Server, string, error) {
	s := anser.NewServer(quiet)
	var payments atomic.Int64
	Find.Handle(s, func(ctx context.Context, _ *Order) (*Receipt, error) {
		if slow {
			<-ctx.Done() // until the call is cancelled
		}
		return new(Receipt), nil
	}, anser.Idempotent())
	Pay.Handle(s, func(context.Context, *Order) (*Receipt, error) { return &Receipt{int(payments.Add(1))}, nil }, anser.Deduplicate())
	Fail.Handle(s, func(context.Context, *Order) (*Receipt, error) {
		failures.Add(1)
		return nil, anser.Aborted
	}, anser.Idempotent())
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", err
	}
	go s.Serve(l)
	return s, l.Addr().String(), nil
}

func run(out io.Writer) error {
	ctx := context.Background()
	var addresses []string
	for i := range 3 {
		s, address, err := serve("127.0.0.1:0", i == 0)
		if err != nil {
			return err
		}
		defer s.Close()
		addresses = append(addresses, address)
	}
	c, err := anser.Dial("tcp://"+strings.Join(addresses, ","), quiet, anser.BackupShare(1), anser.RetryBudget(0.2, 1))
	if err != nil {
		return err
	}
	defer c.Close()
	results, err := fanout.Inform[Receipt](ctx, c, "Shop.Fail", &Order{})
	fmt.Fprintf(out, "inform: %d results, the first is %v, %v\n", len(results), anser.CodeOf(results[0].Err), err)
	for range 10 { // some go to the slow one first
		if _, err := Find.Call(ctx, c, &Order{}, anser.WithFailMode(anser.Backup), anser.BackupAfter(20*time.Millisecond), anser.Idempotent()); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "backup: 10 of 10 calls answered")
	failures.Store(0)
	for range 500 {
		Fail.Call(ctx, c, &Order{}, anser.RetryOn(anser.Aborted), anser.Idempotent())
	}
	fmt.Fprintf(out, "budget: 500 calls that fail are at most 800 attempts: %t\n", failures.Load() <= 800)
	for range 3 {
		at := anser.At(results[1].Instance.Key()) // another instance would not know the key
		receipt, err := Pay.Call(ctx, c, &Order{"goose"}, anser.IdempotencyKey("order-4711"), at)
		fmt.Fprintf(out, "key: receipt %d, %v\n", receipt.Number, err)
	}
	return later(ctx, out)
}

func later(ctx context.Context, out io.Writer) error {
	s, address, err := serve("127.0.0.1:0", false)
	if err != nil {
		return err
	}
	s.Close()
	c, _ := anser.Dial(address, quiet, anser.FailbackQueue(anser.FailbackLimits{Drain: time.Minute}))
	_, err = Find.Call(ctx, c, &Order{}, anser.WithFailMode(anser.Failback))
	fmt.Fprintf(out, "failback: queued: %t\n", errors.Is(err, anser.ErrQueued))
	if s, _, err = serve(address, false); err != nil {
		return err
	}
	defer s.Close()
	c.Close() // waits for it, two seconds by default
	fmt.Fprintf(out, "failback: done later: %d\n", c.Status().Failback.Done)
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
