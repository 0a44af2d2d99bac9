package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
)

// running counts the calls of hold that run.
type running struct{ n atomic.Int64 }

func newRunning() *running { return new(running) }

func (r *running) now() int64 { return r.n.Load() }

// wait waits until there are so many.
func (r *running) wait(value json.RawMessage) error {
	var want int64
	if err := json.Unmarshal(value, &want); err != nil {
		return err
	}
	for end := time.Now().Add(bound); r.now() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%d calls run, want %d", r.now(), want)
		}
	}
	return nil
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
	calls  []*anser.Future[entry]
}

// hold opens the calls as futures, which need no goroutine each.
func (s *client) hold(o holdOptions) (*holding, error) {
	ctx, cancel := context.WithCancel(context.Background())
	h := &holding{cancel: cancel}
	in := entry{ID: make([]byte, 16)}
	for range o.Calls {
		h.calls = append(h.calls, hold.Go(ctx, s.Client, &in, anser.Timeout(time.Hour)))
	}
	return h, nil
}

// cancelAll cancels the calls and returns how long it took until all of them had ended for their caller.
func (h *holding) cancelAll() (time.Duration, error) {
	if h == nil {
		return 0, errors.New("no calls are held")
	}
	began := time.Now()
	h.cancel()
	for _, f := range h.calls {
		if _, err := f.Wait(); !errors.Is(err, context.Canceled) {
			return 0, fmt.Errorf("a call that was cancelled ended with %w", err)
		}
	}
	return time.Since(began), nil
}
