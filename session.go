package anser

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// Session is a client that takes calls (see [Handlers]), as its server sees it. It outlives the
// connections of the client: when the last one is lost, the session goes on for [SessionGrace],
// and calls wait for the client to come back as long as their deadlines allow. Then it ends for
// good; a client that comes back later gets a new one. A client has a session with each server
// that it is connected to. On a server with [Authenticate] a client whose identity has ended is
// sent nothing: calls fail with Unauthenticated and the outcome NotSent until it renews its
// credential or connects again. The methods of a Session are safe for concurrent use.
type Session struct {
	number int64
	key    sessionKey
	server *Server
	done   chan struct{}

	mu     sync.Mutex // guards the fields below
	conns  map[*serverConn]struct{}
	peer   Peer // of the latest connection
	groups map[string]struct{}
	kept   bool    // the user's code may hold the session
	client *Client // made by the first caller that needs it
	host   *host   // of client
	grace  *time.Timer
	ended  bool
}

// sessionKey identifies a session. A client that names the session of another client does not get
// it without the other client's identity or certificate, if it has one.
type sessionKey struct {
	id     uint64
	client [sha256.Size]byte // see clientKey
}

// sessions are the sessions of a server. The zero value is ready for use.
type sessions struct {
	pool pool // of their calls and the numbers of their methods

	mu     sync.Mutex // guards the fields below
	by     map[sessionKey]*Session
	number int64
}

// SessionFrom returns the session of the caller of the handler that ctx belongs to, if it takes
// calls.
func SessionFrom(ctx context.Context) (*Session, bool) {
	c := callFrom(ctx)
	if c == nil || c.conn.accepted == nil || c.conn.accepted.session == nil {
		return nil, false
	}
	sess := c.conn.accepted.session
	sess.keep()
	return sess, true
}

// ID returns the number of the session, which is unique among all sessions of this server, past
// ones included.
func (s *Session) ID() int64 { return s.number }

// Peer returns the peer of the session's latest connection, with the identity that the client has
// proven last.
func (s *Session) Peer() Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peer
}

// Connected reports whether the client is connected now.
func (s *Session) Connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns) > 0
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Client returns a client whose calls go to the client of the session: [Call], [Go], [Send],
// [Bind] and so on work with it as with one from [Dial]. It ends with the session and need not be
// closed. Its calls have 10 s unless their context has a deadline, and are retried like the calls
// of every client. The interceptors of the server do not apply to them, but its observers do.
//
// A handler may call its caller. A handler that waits for the answer is moved off the reader
// goroutine of the connection; [Concurrent] saves that.
func (s *Session) Client() *Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clientLocked()
}

func (s *Session) clientLocked() *Client {
	if s.client != nil {
		return s.client
	}
	s.kept = true
	name := "client " + addressOf(s.peer.Addr)
	o := s.server.o.sideOptions
	o.interceptors = nil // the interceptors of the server wrap its handlers
	s.client, s.host = newSessionClient(o, &s.server.sessions.pool, name)
	s.client.o.call.compression = s.server.o.calls
	if s.ended {
		s.client.cluster.EndWith(errSessionEnded)
		return s.client
	}
	for c := range s.conns {
		s.attachLocked(c)
	}
	return s.client
}

const errSessionEnded = "the session of the client has ended: it was away for longer than anser.SessionGrace, or the server has stopped"

// newSessionClient returns a client whose connections are the ones that attachLocked adds to the
// host.
func newSessionClient(o sideOptions, p *pool, name string) (*Client, *host) {
	c := &Client{target: name, pool: p}
	c.o = defaultDialOptions()
	c.o.sideOptions = o
	c.observed = "session" // there can be any number of names
	c.init()
	h := newHost(p, hostOptions{address: name, maxMessage: o.maxMessage, observers: o.observers}, nil)
	in := registry.Instance{Service: "session", Address: name}
	c.cluster.Fix(in, h)
	return c, h
}

// Sessions returns the sessions of the clients that take calls and are connected, or may still
// come back, the oldest first.
func (s *Server) Sessions() []*Session {
	if s.usable() != nil {
		return nil
	}
	s.sessions.mu.Lock()
	list := slices.Collect(maps.Values(s.sessions.by))
	s.sessions.mu.Unlock()
	for _, sess := range list {
		sess.keep()
	}
	slices.SortFunc(list, func(a, b *Session) int { return int(a.number - b.number) })
	return list
}

// keep makes the session outlive its connection, because the user's code may hold it.
func (s *Session) keep() {
	s.mu.Lock()
	s.kept = true
	s.mu.Unlock()
}

// join finds or makes the session of a connection that has completed its handshake.
func (s *Server) join(c *serverConn) {
	key := sessionKey{id: c.peer.Session, client: c.clientKey()}
	s.sessions.mu.Lock()
	sess := s.sessions.by[key]
	fresh := sess == nil
	if fresh {
		s.sessions.number++
		sess = &Session{number: s.sessions.number, key: key, server: s, done: make(chan struct{}), conns: make(map[*serverConn]struct{})}
		if s.sessions.by == nil {
			s.sessions.by = make(map[sessionKey]*Session)
		}
		s.sessions.by[key] = sess
	}
	sess.mu.Lock() // under the other lock, so that the session does not end in between
	sess.conns[c] = struct{}{}
	sess.peer = c.peerInfo()
	if sess.grace != nil {
		sess.grace.Stop()
		sess.grace = nil
	}
	if sess.client != nil {
		sess.attachLocked(c)
	}
	sess.mu.Unlock()
	s.sessions.mu.Unlock()
	c.session = sess
	if fresh && s.o.onSession != nil {
		sess.keep()
		c.spawn(func() { s.tellSession(sess) })
	}
}

// tellSession calls the user's OnSession function and recovers its panics.
func (s *Server) tellSession(sess *Session) {
	defer func() {
		if p := recover(); p != nil {
			s.stats.panics.Add(1)
			s.log.Error("the function of anser.OnSession panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	s.o.onSession(sess)
}

// attachLocked lets the calls of the session go over c.
func (s *Session) attachLocked(c *serverConn) {
	half := newSessionCaller(c, s.host)
	c.toClient.Store(new(callsToClient(half)))
	s.host.mu.Lock()
	tell := s.host.enlistLocked(&half.callerHalf)
	s.host.mu.Unlock()
	tell()
}

// leave removes a connection that has ended from its session. The session's calls on it end with
// err.
func (c *serverConn) leave(err error) {
	sess, srv := c.session, c.server
	srv.sessions.mu.Lock()
	crowded := len(srv.sessions.by) > srv.o.maxConns // so that clients that come and go do not fill the memory
	srv.sessions.mu.Unlock()
	if crowded {
		srv.stats.hit(limitConns)
	}
	sess.mu.Lock()
	delete(sess.conns, c)
	alone := len(sess.conns) == 0
	kept := sess.kept && !crowded && !srv.stopping.Load()
	if alone && kept && !sess.ended {
		sess.grace = time.AfterFunc(srv.o.sessionGrace, sess.endIfAway)
	}
	half := c.sessionCaller()
	sess.mu.Unlock()
	if alone && !kept {
		sess.endIfAway()
	}
	if half != nil {
		half.host.remove(&half.callerHalf, errAway)
		half.end(err)
	}
}

// endIfAway ends the session unless its client has come back.
func (s *Session) endIfAway() { s.end(false) }

func (s *Session) end(always bool) {
	all := &s.server.sessions
	all.mu.Lock()
	s.mu.Lock()
	if s.ended || len(s.conns) > 0 && !always {
		s.mu.Unlock()
		all.mu.Unlock()
		return
	}
	s.ended = true
	if s.grace != nil {
		s.grace.Stop()
	}
	delete(all.by, s.key)
	client, h := s.client, s.host
	s.mu.Unlock()
	all.mu.Unlock()
	close(s.done)
	if client == nil {
		return
	}
	client.cluster.EndWith(errSessionEnded) // before the host, whose waiters check it next
	h.mu.Lock()
	h.closed = true
	tell := h.changedLocked()
	h.mu.Unlock()
	tell()
	client.cancel()
}

// endSessions ends all sessions when the server stops.
func (s *Server) endSessions() {
	s.sessions.mu.Lock()
	list := slices.Collect(maps.Values(s.sessions.by))
	s.sessions.mu.Unlock()
	for _, sess := range list {
		sess.end(true)
	}
}

// SessionGrace sets for how long the session of a lost client goes on; the default is 30 s. Only
// sessions that the user's code has obtained go on: see [SessionFrom], [Server.Sessions] and
// [OnSession]. While there are more sessions than [MaxConns], none does.
func SessionGrace(d time.Duration) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(d >= 0, "anser.SessionGrace(%v): want at least 0", d) {
			o.sessionGrace = d
		}
	})
}

// OnSession sets a function that is called, on a goroutine of its own, with every new session.
// The server waits for it when it stops. The Done channel of the session is closed when the
// session ends.
func OnSession(f func(*Session)) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(f != nil, "anser.OnSession: the function is nil") {
			o.onSession = f
		}
	})
}

// renewed records that the identity of one of the session's connections has changed.
func (s *Session) renewed(c *serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.conns[c]; !ok {
		return
	}
	s.peer.Identity = c.identity()
	if half := c.sessionCaller(); half != nil {
		half.host.putBack(&half.callerHalf)
	}
}
