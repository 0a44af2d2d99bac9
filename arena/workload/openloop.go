package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// alarm wakes one goroutine after a while.
type alarm interface {
	// wait waits for d, which is more than 0. It fails after close.
	wait(d time.Duration) error
	close()
}

// leastTick is the least time between two rounds of the pacer. Up to 20,000 calls/s each call is
// started at its moment; beyond that some are late by up to this, for which their latency
// accounts. Without it the pacer would take a good part of a core at 100,000 calls/s.
const leastTick = 50 * time.Microsecond

// openLoop has all callers call at the moments that the rate gives.
//
// One goroutine, the pacer, wakes them. A time.Sleep of their own would be simpler, but on Linux
// an idle Go program sleeps in whole milliseconds: measured at 100 to 100,000 calls/s, half of the
// calls started more than 0.5 ms late and 1 % more than 1.1 ms, which is more than the calls take.
func (r *run) openLoop(ctx context.Context, open *opened, a alarm, tallies []tally) error {
	waiting, over := context.WithCancel(ctx)
	turns := make([]chan struct{}, len(tallies))
	for i := range turns {
		turns[i] = make(chan struct{}, 1)
	}
	var callers, pacer sync.WaitGroup
	var failed error // guarded by pacer
	for i := range tallies {
		call := open.one(i / r.o.Window)
		callers.Go(func() {
			if !r.onTime(ctx, waiting, i, call, turns[i], &tallies[i]) {
				over()
			}
		})
	}
	pacer.Go(func() {
		if failed = r.pace(waiting, a, turns); failed != nil {
			over()
		}
	})
	callers.Wait()
	if r.o.Calls == 0 { // the last calls may have been due long before the end
		rest := time.NewTimer(r.until - r.now())
		select {
		case <-rest.C:
		case <-waiting.Done():
			rest.Stop()
		}
	}
	over()
	a.close()
	pacer.Wait()
	return failed
}

// onTime makes a caller's k-th call at its moment, or when the one before is over if that is
// later. It says whether the others may go on waiting for theirs.
func (r *run) onTime(ctx, waiting context.Context, i int, call Call, turn <-chan struct{}, t *tally) bool {
	for k := 0; ; k++ {
		due := r.due(k*r.o.Callers*r.o.Window + i)
		if due >= r.until {
			return true
		}
		for r.now() < due {
			select {
			case <-turn: // possibly of an earlier call, which did not need to wait for it
			case <-waiting.Done():
				return false
			}
		}
		if r.now() >= r.until { // so late that it would not count
			return true
		}
		if !r.goesOn(ctx, due) {
			return false
		}
		if r.o.Deadline > 0 {
			err := r.inTime(call, due)
			r.count(t, r.shard(i), due, r.now(), err)
			continue // an overloaded server refuses many calls, and the rate stays what it is
		}
		err := call(context.Background())
		r.count(t, r.shard(i), due, r.now(), err)
		pause(err)
	}
}

// errLate is the error of a call whose reply came after its deadline.
var errLate = errors.New("the reply came after the deadline")

// inTime makes a call that ends at the deadline. A later reply does not count, as the caller no
// longer waits for it.
func (r *run) inTime(call Call, due time.Duration) error {
	ctx, cancel := context.WithDeadline(context.Background(), r.epoch.Add(due+r.o.Deadline))
	defer cancel()
	err := call(ctx)
	if err == nil && r.now() > due+r.o.Deadline {
		return errLate
	}
	return err
}

// due returns the moment of a call, all callers' calls counted together.
func (r *run) due(call int) time.Duration {
	return time.Duration(float64(call) * float64(time.Second) / r.o.Rate)
}

// pace gives each caller its turn at the moment of its call, until the last call or the end of
// ctx.
func (r *run) pace(ctx context.Context, a alarm, turns []chan struct{}) error {
	next := 0
	for ctx.Err() == nil && r.due(next) < r.until {
		if d := r.due(next) - r.now(); d > 0 {
			if err := a.wait(max(d, leastTick)); err != nil && ctx.Err() == nil {
				return fmt.Errorf("wait for the next call: %w", err)
			}
		}
		for now := r.now(); r.due(next) <= now; next++ {
			select {
			case turns[next%len(turns)] <- struct{}{}:
			default: // one that this caller was too late to need is still there, and wakes it
			}
		}
	}
	return nil
}
