package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
)

// running counts the calls of hold that run, and streams of feed.
type running struct {
	n     atomic.Int64
	feeds atomic.Int64 // streams that ever ran
}

func newRunning() *running { return new(running) }

func (r *running) now() int64 { return r.n.Load() }

// waitOptions set the number of calls of hold to wait for, and the timeout.
type waitOptions struct {
	Calls  int64
	Within time.Duration
}

// wait waits for that number of calls; false: a timeout.
func (r *running) wait(value json.RawMessage) (bool, error) {
	var o waitOptions
	if err := json.Unmarshal(value, &o); err != nil {
		return false, err
	}
	for end := time.Now().Add(o.Within); r.now() != o.Calls; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false, nil
		}
	}
	return true, nil
}

// hold runs until the call is cancelled.
func (s *server) hold(ctx context.Context, in *entry) (*entry, error) {
	s.running.n.Add(1)
	defer s.running.n.Add(-1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// holdOptions are of calls that stay open.
type holdOptions struct{ Calls int }

// holding is a number of calls that stay open until they are cancelled.
type holding struct {
	cancel context.CancelFunc
	wait   func() error // until all have ended; an error if one did otherwise than by being cancelled
}

// heldEntry is what calls that stay open are about.
func heldEntry() *entry { return &entry{ID: make([]byte, 16)} }

// hold opens calls that stay open.
func (s *client) hold(o holdOptions) *holding {
	ctx, cancel := context.WithCancel(context.Background())
	return &holding{cancel: cancel, wait: s.caller.hold(ctx, o.Calls)}
}

// hold opens the calls as futures, which need no goroutine each.
func (a anserCaller) hold(ctx context.Context, n int) (wait func() error) {
	in := heldEntry()
	calls := make([]*anser.Future[entry], n)
	for i := range calls {
		calls[i] = hold.Go(ctx, a.client, in, anser.Timeout(time.Hour))
	}
	return func() error {
		for _, f := range calls {
			if _, err := f.Wait(); !errors.Is(err, context.Canceled) {
				return cancelledWith(err)
			}
		}
		return nil
	}
}

// holdEach makes each call in a goroutine, for frameworks whose calls that can be cancelled block.
// They tell by call whether the call i ended by being cancelled, and if not how.
func holdEach(n int, call func(i int, in *entry) error) (wait func() error) {
	var calls sync.WaitGroup
	var failed atomic.Pointer[error]
	in := heldEntry()
	for i := range n {
		calls.Go(func() {
			if err := call(i, in); err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	return func() error {
		calls.Wait()
		if err := failed.Load(); err != nil {
			return cancelledWith(*err)
		}
		return nil
	}
}

func cancelledWith(err error) error {
	return fmt.Errorf("a call that was cancelled ended with %w", err)
}

// cancelAll cancels the calls and returns how long it took until all of them had ended for their
// caller.
func (h *holding) cancelAll() (time.Duration, error) {
	if h == nil {
		return 0, errors.New("no calls are held")
	}
	began := time.Now()
	h.cancel()
	err := h.wait()
	return time.Since(began), err
}

// fill keeps that number of calls open: one that is refused is made again.
func (s *client) fill(o holdOptions) *holding {
	ctx, cancel := context.WithCancel(context.Background())
	return &holding{cancel: cancel, wait: holdEach(o.Calls, func(_ int, in *entry) error {
		for {
			_, err := hold.Call(ctx, s.Client, in, anser.Timeout(time.Hour))
			if !errors.Is(err, anser.ResourceExhausted) {
				if errors.Is(err, context.Canceled) {
					return nil
				}
				return err
			}
			time.Sleep(time.Millisecond)
		}
	})}
}
