package netrpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
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
	if _, err := s.host(); err != nil {
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
	case len(s.sessions) >= limit: // those in their handshake, too
		s.stats.refusedConns.Add(1)
		return fmt.Errorf("rpc: the server holds %d connections already, which is its limit (Server.MaxConns)", limit)
	}
	if s.sessions == nil {
		s.sessions = make(map[*session]struct{})
	}
	s.sessions[c] = struct{}{}
	return nil
}

// leave counts a connection out.
func (s *Server) leave(c *session) {
	c.lose(nil)
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
	if err := c.open(); err != nil {
		return err
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
	for _, c := range s.liveSessions() {
		c.drain()
	}
	var err error
	select {
	case <-s.empty:
	case <-ctx.Done():
		err = fmt.Errorf("shutdown: calls were still in flight: %w", context.Cause(ctx))
	}
	return errors.Join(err, s.finish(ctx, overtime))
}

// Close ends the server at once. It closes the listeners and connections that it serves, and ends the
// contexts of calls. Like Shutdown it waits for the server's goroutines, up to a second for methods that go on
// although their contexts have ended.
func (s *Server) Close() error {
	if s == nil {
		return errNoServer
	}
	s.stop()
	return s.finish(context.Background(), endBound)
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

// finish closes what is left and waits for it: as long as ctx lasts, and then no longer than bound.
func (s *Server) finish(ctx context.Context, bound time.Duration) error {
	for _, c := range s.liveSessions() {
		c.lose(anser.ErrServerClosed)
		c.codec.Close()
	}
	s.mu.Lock()
	own := s.own
	s.mu.Unlock()
	t := time.NewTimer(bound)
	defer t.Stop()
	select {
	case <-s.empty:
	case <-t.C:
		return errMethodsLeft
	}
	if own != nil && own.Close() != nil {
		return errMethodsLeft
	}
	return nil
}

// drain refuses new calls, and closes the connection when those that run have their replies.
func (c *session) drain() {
	c.mu.Lock()
	conn := c.conn
	c.draining = true
	c.mu.Unlock()
	if conn != nil {
		conn.Drain(0)
	} else {
		c.codec.Close() // it is in its handshake
	}
}
