package anser

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/wire"
)

// Shutdown ends the server without failing a call: it takes back what [Announce] registered,
// closes the listeners, tells clients to go elsewhere, waits until the calls in flight are done, and
// closes the connections. When ctx is done first, it closes what is left and returns ctx's error.
// Shutdown may be called more than once; each call waits.
func (s *Server) Shutdown(ctx context.Context) error {
	s.announced.stop(ctx, &s.o.sideOptions)
	s.stop(ctx)
	by, _ := ctx.Deadline()
	grace := s.graceUntil(by)
	var drains sync.WaitGroup
	defer drains.Wait()
	for _, c := range s.liveConns() {
		// A client that does not read must not hold up the others.
		drains.Go(func() { c.startDrain(grace) })
	}
	var err error
	select {
	case <-s.empty:
	case <-ctx.Done():
		err = fmt.Errorf("shutdown: calls were still in flight: %w", ctx.Err())
	}
	return errors.Join(err, s.finish())
}

// Close ends the server at once. Calls in flight end with the outcome Unknown for their callers.
// Like Shutdown it waits for the server's goroutines, and up to a second for handlers.
func (s *Server) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.announced.stop(ctx, &s.o.sideOptions)
	s.stop(ctx)
	return s.finish()
}

// graceUntil is how long calls may go on where the server is closed by then, or at a time that is not known.
func (s *Server) graceUntil(by time.Time) time.Duration {
	if by.IsZero() {
		return s.o.grace
	}
	return time.Until(by)
}

// stop closes the listeners and lets no connection in any more. ctx is that of Shutdown.
func (s *Server) stop(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.closesBy, _ = ctx.Deadline()
	s.stopping.Store(true)
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	for l := range s.listeners {
		l.Close()
	}
	for nc := range s.raw {
		nc.SetReadDeadline(time.Now().Add(time.Second))
	}
	s.checkEmptyLocked()
}

const (
	// farewell is how long Shutdown and Close wait for the connections to take CLOSE.
	farewell = 250 * time.Millisecond
	// endBound is how long they wait for handlers after their contexts have ended.
	endBound = time.Second
)

var serverClosed = wire.Errorf(wire.Normal, "the server is closed")

// finish closes all connections and waits for the server's goroutines. Handlers that go on although
// their context has ended are left behind after endBound; they are an error.
func (s *Server) finish() error {
	s.endSessions()
	s.replies.stop()
	s.mu.Lock()
	attached := slices.Collect(maps.Keys(s.attached))
	for nc := range s.raw {
		nc.Close()
	}
	tending, tended := s.tending, s.tended
	s.tending = nil
	s.mu.Unlock()
	for _, c := range s.liveConns() {
		c.condemn(serverClosed)
	}
	for _, c := range attached {
		c.cancelAll(serverClosed)
	}
	if tending != nil {
		close(tending)
	}
	if tended != nil {
		<-tended
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.conns.Wait() // the monitor has to be there: it frees a reader that is stuck in a handler
		s.monitor.close()
		s.workers.close()
	}()
	t := time.NewTimer(farewell)
	defer t.Stop()
	select {
	case <-ended:
		return nil
	case <-t.C:
	}
	for _, c := range s.liveConns() {
		c.fail(errConnClosed)
	}
	t.Reset(endBound)
	select {
	case <-ended:
		return nil
	case <-t.C:
		return errHandlersLeft
	}
}

var errHandlersLeft = errors.New("handlers are still running although their contexts have ended")
