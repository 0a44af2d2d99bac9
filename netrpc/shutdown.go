package netrpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/anser-rpc/anser"
)

type sessionKey struct{}

// enter adds a connection.
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
	case len(s.sessions) >= limit: // including connections in their handshake
		s.stats.refusedConns.Add(1)
		return fmt.Errorf("rpc: the server holds %d connections already, which is its limit (Server.MaxConns)", limit)
	}
	if s.sessions == nil {
		s.sessions = make(map[*session]struct{})
	}
	s.sessions[c] = struct{}{}
	return nil
}

// leave removes a connection.
func (s *Server) leave(c *session) {
	c.lose(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, c)
	if s.closed && len(s.sessions) == 0 {
		close(s.empty)
	}
}

// setPeer determines the peer of the connection.
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
	if pc, ok := conn.(*peerConn); ok {
		c.peer = pc.peer
	}
}

// Shutdown ends the server without failing calls in flight: it closes its listeners, rejects later
// requests with an error that explains it, lets the calls in flight finish, sends their replies
// and closes the connections. It also waits for methods whose callers have disconnected.
//
// ctx bounds all of this. If it is done first, Shutdown ends the contexts of the remaining calls,
// closes their connections, and returns ctx's error at most 100 ms later, whether the methods have
// returned or not.
//
// net/rpc's protocol cannot announce a shutdown: a call in flight to the server when its
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
	return errors.Join(err, s.finish(overtime))
}

// Close ends the server at once. It closes its listeners and connections, and ends the contexts of
// calls. Like Shutdown it waits for the server's goroutines, up to one second for methods that
// continue after their contexts have ended.
func (s *Server) Close() error {
	if s == nil {
		return errNoServer
	}
	s.stop()
	return s.finish(endBound)
}

// stop refuses new connections.
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

// How long to wait for methods whose contexts have ended.
const (
	overtime = 100 * time.Millisecond // by Shutdown, after its context has ended
	endBound = time.Second            // by Close
)

var errMethodsLeft = errors.New("methods are still running although their contexts have ended")

// finish closes the remaining connections, and waits for them no longer than bound.
func (s *Server) finish(bound time.Duration) error {
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

// drain refuses new calls, and closes the connection when the running ones have their replies.
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
