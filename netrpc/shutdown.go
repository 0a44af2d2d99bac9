package netrpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
)

type sessionKey struct{}

// enter counts a connection in.
func (s *Server) enter(c *session) error {
	if c.ctx == nil {
		c.ctx = context.Background()
	}
	c.ctx = context.WithValue(c.ctx, sessionKey{}, c)
	c.ctx, c.cancel = context.WithCancel(c.ctx)
	c.setPeer()
	if err := s.mistake(); err != nil {
		s.log().Error("rpc: connection refused", "err", err)
		return err
	}
	if c.link != nil && !c.single {
		c.link.SetLimits(s.limits())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch limit := or(s.MaxConns, defaultMaxConns); {
	case s.closed:
		return anser.ErrServerClosed
	case len(s.sessions) >= limit:
		s.stats.refusedConns.Add(1)
		return fmt.Errorf("rpc: the server holds %d connections already, which is its limit (Server.MaxConns)", limit)
	}
	if s.sessions == nil {
		s.sessions = make(map[*session]struct{})
	}
	s.sessions[c] = struct{}{}
	s.stats.accepted.Add(1)
	return nil
}

// leave counts a connection out.
func (s *Server) leave(c *session) {
	c.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, c)
	if s.closed && len(s.sessions) == 0 {
		close(s.empty)
	}
}

// setPeer finds out who the other side is.
func (c *session) setPeer() {
	if c.link == nil {
		if a, ok := c.codec.(interface{ RemoteAddr() net.Addr }); ok {
			c.peer.Addr = a.RemoteAddr()
		}
		return
	}
	conn, ok := c.link.Transport().(net.Conn)
	if !ok {
		return
	}
	c.peer.Addr, c.peer.Local = conn.RemoteAddr(), conn.LocalAddr()
	if c.request != nil {
		c.peer.TLS = c.request.TLS
	}
}

// handshake does what comes before the first request.
func (c *session) handshake() error {
	timeout := or(c.server.HandshakeTimeout, defaultHandshake)
	if c.link != nil {
		if conn, ok := c.link.Transport().(*tls.Conn); ok && c.peer.TLS == nil {
			ctx, cancel := context.WithTimeout(c.ctx, timeout)
			defer cancel()
			if err := conn.HandshakeContext(ctx); err != nil {
				return fmt.Errorf("TLS: %w", err)
			}
			state := conn.ConnectionState()
			c.peer.TLS = &state
		}
	}
	c.introduce(timeout)
	return nil
}

// Shutdown ends the server without failing a call that it has begun: it closes the listeners that it
// serves, refuses what still arrives with an error that says so, lets the calls in flight finish,
// sends their replies and closes the connections. Methods whose callers have gone are waited for too.
//
// ctx decides how long all of that takes. When it is done first, Shutdown ends the contexts of the calls that are
// left, closes their connections, and returns ctx's error at most 100 ms later, whether the methods have
// returned or not.
//
// net/rpc's wire has no word for going away: a call that is under way to the server when its
// connection is closed ends with io.ErrUnexpectedEOF, or ErrShutdown.
func (s *Server) Shutdown(ctx context.Context) error {
	switch {
	case s == nil:
		return errNoServer
	case ctx == nil:
		return errNoContext
	}
	s.stop()
	var drains sync.WaitGroup
	defer drains.Wait() // not for long: a client that does not read has lost its connection by then
	for _, c := range s.liveSessions() {
		drains.Go(func() { c.drain(ctx) })
	}
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
	}
	err := fmt.Errorf("shutdown: calls were still in flight: %w", context.Cause(ctx))
	return errors.Join(err, s.finish(overtime))
}

// Close ends the server at once. It closes the listeners and connections that it serves, and ends the
// contexts of calls. Like Shutdown it waits for the server's goroutines, up to a second for methods that go on
// although their contexts have ended.
func (s *Server) Close() error {
	if s == nil {
		return errNoServer
	}
	s.stop()
	return s.finish(endBound)
}

// stop lets nobody in any more.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.empty = make(chan struct{})
		if len(s.sessions) == 0 {
			close(s.empty)
		}
	}
	for l := range s.listeners {
		(*l).Close()
	}
}

func (s *Server) liveSessions() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*session, 0, len(s.sessions))
	for c := range s.sessions {
		list = append(list, c)
	}
	return list
}

// How long methods are waited for whose contexts have ended.
const (
	overtime = 100 * time.Millisecond // by Shutdown, whose time is over
	endBound = time.Second            // by Close
)

var errMethodsLeft = errors.New("methods are still running although their contexts have ended")

// finish closes what is left and waits for it, no longer than bound.
func (s *Server) finish(bound time.Duration) error {
	for _, c := range s.liveSessions() {
		c.cancel()
		c.codec.Close()
	}
	t := time.NewTimer(bound)
	defer t.Stop()
	select {
	case <-s.empty:
		return nil
	case <-t.C:
	}
	select {
	case <-s.empty: // both have happened: the process did not run in between
		return nil
	default:
		return errMethodsLeft
	}
}

// drain refuses new calls and waits for those that run, as long as ctx lasts. Then it closes the connection, so that
// the other side gets the replies before the end.
func (c *session) drain(ctx context.Context) {
	c.mu.Lock()
	if !c.draining {
		c.draining = true
		c.quiet = make(chan struct{})
		if c.calls == 0 {
			close(c.quiet)
		}
	}
	c.mu.Unlock()
	select {
	case <-c.quiet:
	case <-ctx.Done():
		return
	}
	if c.link == nil {
		c.codec.Close()
		return
	}
	c.flush()
	c.link.Linger()
}
