package anser

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/sysconn"
	"github.com/anser-rpc/anser/wire"
)

// Shutdown ends the server without failing a call: it deregisters what [Announce] registered,
// closes the listeners, tells clients to use other servers, waits until the calls in flight are
// done, including those of callers that have gone, and closes the connections.
//
// ctx limits how long all of that takes. When it is done first, Shutdown ends the contexts of the
// remaining handlers, closes their connections, and returns ctx's error at most 100 ms later,
// whether the handlers have returned or not. A registry that does not answer gets a quarter of
// the time, and 3 s at most; with a context that is done already, half a second. Shutdown may be
// called more than once; each call waits.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.usable(); err != nil {
		return err
	}
	if ctx == nil {
		return errNilEnd
	}
	s.announced.stop(ctx, &s.o.sideOptions)
	s.stop(ctx)
	by, _ := ctx.Deadline()
	grace := s.graceUntil(by)
	var drains sync.WaitGroup
	defer drains.Wait() // not for long: a client that does not read has lost its connection by then
	for _, c := range s.liveConns() {
		// A client that does not read must not delay the others.
		drains.Go(func() { c.startDrain(grace) })
	}
	var err error
	select {
	case <-s.empty:
	case <-ctx.Done():
		err = fmt.Errorf("shutdown: calls were still in flight: %w", ctx.Err())
	}
	ended := s.finish()
	select {
	case <-ended: // the handlers of callers that have gone may still run
		return err
	case <-ctx.Done():
	}
	if s.conclude(ended, overtime/2, overtime/2) {
		return err
	}
	if err == nil {
		err = fmt.Errorf("shutdown: %w", ctx.Err())
	}
	return errors.Join(err, errHandlersLeft)
}

// Close ends the server at once. Calls in flight end with the outcome Unknown for their callers.
// Like Shutdown it waits for the server's goroutines, and up to a second for handlers.
func (s *Server) Close() error {
	if err := s.usable(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.announced.stop(ctx, &s.o.sideOptions)
	s.stop(ctx)
	if !s.conclude(s.finish(), farewell, endBound) {
		return errHandlersLeft
	}
	return nil
}

// graceUntil returns how long calls may go on if the server is closed at the time by, or at an
// unknown time.
func (s *Server) graceUntil(by time.Time) time.Duration {
	if by.IsZero() {
		return s.o.grace
	}
	return time.Until(by)
}

// stop closes the listeners and accepts no more connections. ctx is the context of Shutdown.
func (s *Server) stop(ctx context.Context) {
	s.mu.Lock()
	listeners := slices.Collect(maps.Keys(s.listeners))
	s.mu.Unlock()
	for _, l := range listeners {
		for _, nc := range sysconn.Pending(*l) { // which the system would reset
			s.accept(nc, true)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.closesBy, _ = ctx.Deadline()
	s.stopping.Store(true)
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	for l := range s.listeners {
		(*l).Close()
	}
	for _, nc := range s.raw {
		nc.SetReadDeadline(time.Now().Add(lastWord))
	}
	s.checkEmptyLocked()
}

const (
	// overtime is how long Shutdown may take when its context is done: half of it for sending
	// CLOSE on the connections, the other half for the goroutines that end with them.
	overtime = 100 * time.Millisecond
	// farewell is how long Close waits until CLOSE is sent on the connections.
	farewell = 250 * time.Millisecond
	// endBound is how long Close waits for handlers after their contexts have ended.
	endBound = time.Second
)

var serverClosed = wire.Errorf(wire.Normal, "the server is closed")

// finish makes all connections end, and with them the contexts of their handlers. The channel is
// closed when all of the server's goroutines have ended.
func (s *Server) finish() <-chan struct{} {
	s.endSessions()
	for _, ctx := range s.replies.Running() { // without their connections they are in no other table
		ctx.end(context.Canceled)
	}
	s.mu.Lock()
	attached := slices.Collect(maps.Keys(s.attached))
	for _, nc := range s.raw {
		nc.Close()
	}
	s.mu.Unlock()
	for _, c := range s.liveConns() {
		c.failWith(serverClosed)
	}
	for _, c := range attached {
		c.cancelAll(serverClosed)
	}
	s.upkeep.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.conns.Wait() // the monitor must still run: it frees a reader that is stuck in a handler
		s.monitor.close()
		s.workers.Close()
	}()
	s.reportEnd.Do(func() { s.o.observers.ended(s) })
	return ended
}

// conclude waits until all of the server's goroutines have ended, and reports whether they have.
// It cuts connections on which CLOSE could not be sent within goodbye, and does not wait for
// handlers that go on for longer than rest after that.
func (s *Server) conclude(ended <-chan struct{}, goodbye, rest time.Duration) bool {
	t := time.NewTimer(goodbye)
	defer t.Stop()
	select {
	case <-ended:
		return true
	case <-t.C:
	}
	for _, c := range s.liveConns() {
		c.fail(errConnClosed)
	}
	t.Reset(rest)
	select {
	case <-ended:
		return true
	case <-t.C:
		return false
	}
}

var errHandlersLeft = errors.New("handlers are still running although their contexts have ended")
