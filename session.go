package anser

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/idtable"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/wire"
)

// Session is a client that takes calls (see [Handlers]), as its server sees it. It outlives the connections
// of the client: when the last one is lost, the session goes on for [SessionGrace], and calls wait for the
// client to come back as long as they may. Then it ends, for good; a client that comes back later has another
// one. A client has a session with each server that it is connected to. On a server with [Authenticate] a client whose
// identity has ended is sent nothing: calls fail with Unauthenticated and the outcome NotSent until it renews its
// credential or connects again. The methods of a Session are safe for concurrent use.
type Session struct {
	number int64
	key    sessionKey
	server *Server
	done   chan struct{}

	mu     sync.Mutex // guards what follows
	conns  map[*serverConn]struct{}
	peer   Peer // of the latest connection
	groups map[string]struct{}
	kept   bool    // somebody may have the session in hand
	client *Client // made by the first who asks
	host   *host   // of client
	grace  *time.Timer
	ended  bool
}

// sessionKey tells sessions apart. A client that names the session of another one does not get it without
// that one's identity or certificate, if it has one.
type sessionKey struct {
	id     uint64
	client [sha256.Size]byte // see clientKey
}

// sessions are those of a server. The zero value is ready for use.
type sessions struct {
	pool pool // of their calls and the numbers of their methods

	mu     sync.Mutex // guards what follows
	by     map[sessionKey]*Session
	number int64
}

// SessionFrom returns the session of the caller of the handler that ctx belongs to, if it takes calls.
func SessionFrom(ctx context.Context) (*Session, bool) {
	c := callFrom(ctx)
	if c == nil || c.conn.session == nil {
		return nil, false
	}
	c.conn.session.keep()
	return c.conn.session, true
}

// ID returns the number of the session, which no other one of this server has or had.
func (s *Session) ID() int64 { return s.number }

// Peer returns the other side of the session's latest connection, with the identity that the client has proven last.
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

// Client returns what calls the client: [Call], [Go], [Send], [Bind] and so on work with it as with one from
// [Dial]. It ends with the session and need not be closed. Its calls have 10 s unless their context has a
// deadline, and are tried again as those of every client. The interceptors of the server are not for them; its
// observers are told.
//
// A handler may call its caller. One that waits for the answer is moved off the goroutine that reads the
// connection; [Concurrent] saves that.
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
	o.interceptors = nil // those of the server wrap its handlers
	s.client, s.host = newBackClient(o, &s.server.sessions.pool, name)
	s.client.o.call.compression = s.server.o.calls
	if s.ended {
		s.client.cluster.endWith(errSessionEnded)
		return s.client
	}
	for c := range s.conns {
		s.attachLocked(c)
	}
	return s.client
}

const errSessionEnded = "the session of the client has ended: it was away for longer than anser.SessionGrace, or the server has stopped"

func addressOf(a net.Addr) string {
	if a == nil || a.String() == "" {
		return "without an address"
	}
	return a.String()
}

// newBackClient returns a client whose connections are those that attachLocked gives to the host.
func newBackClient(o sideOptions, p *pool, name string) (*Client, *host) {
	c := &Client{target: name, pool: p}
	c.o = defaultDialOptions()
	c.o.sideOptions = o
	c.init()
	h := newHost(p, hostOptions{address: name, maxMessage: o.maxMessage, observers: o.observers}, nil)
	h.dialing = true // the other side does that
	in := registry.Instance{Service: "session", Address: name}
	c.cluster.view.Store(&view{only: &endpoint{Endpoint: balance.NewEndpoint(in), host: h, cluster: c.cluster}, usable: 1, total: 1})
	return c, h
}

// Sessions returns the sessions of the clients that take calls and are connected, or may still come back,
// the oldest first.
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

// keep has the session go on without a connection, as somebody may use it.
func (s *Session) keep() {
	s.mu.Lock()
	s.kept = true
	s.mu.Unlock()
}

// join finds or makes the session of a connection that has shaken hands.
func (s *Server) join(c *serverConn) {
	key := sessionKey{id: c.peerSays.Session, client: c.clientKey()}
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
	sess.mu.Lock() // under the other one, so that the session does not end in between
	sess.conns[c] = struct{}{}
	sess.peer = c.peer()
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

// tellSession calls the user's function, whose panics are its own.
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
	back := &clientConn{host: s.host, born: nanotime()}
	back.writer.init(&relay{Conn: c.nc, to: c}, &back.wg, &back.streams)
	back.peer, back.elsewhere, back.trust = c.peerSays, back.writeRest, c.trust
	back.streams.init(&s.server.settings, &back.peer, false, false) // it carries none
	back.role.who.Store(goroutineReads)                             // whoever reads c
	back.role.batch = make([]arrived, 1)
	c.back.Store(back)
	s.host.mu.Lock()
	tell := s.host.enlistLocked(back)
	s.host.mu.Unlock()
	tell()
}

// leave takes a connection that has ended out of its session, whose calls on it end with err.
func (c *serverConn) leave(err error) {
	sess, srv := c.session, c.server
	srv.sessions.mu.Lock()
	crowded := len(srv.sessions.by) > srv.o.maxConns // clients that come and go fill no memory
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
	back := c.back.Load()
	sess.mu.Unlock()
	if alone && !kept {
		sess.endIfAway()
	}
	if back != nil {
		back.host.remove(back, errAway)
		back.end(err)
		back.wg.Wait()
	}
}

var errAway = errors.New("the client is away")

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
	client.cluster.endWith(errSessionEnded) // before the host: who waits there looks here then
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

// answered takes the answer of the client to a call of its server.
func (c *serverConn) answered(s *reading, h wire.Header, body []byte) error {
	if h.ID&fromServer == 0 {
		return wire.Errorf(wire.BadFrame, "%s frame from a client, for a call that it must have made itself", h.Type)
	}
	back := c.back.Load()
	if back == nil {
		return wire.Errorf(wire.BadID, "%s for the call %d, which was never made", h.Type, h.ID)
	}
	s.pings = pingLimit{}
	back.progress.lastRead.Store(nanotime())
	back.role.batch[0] = arrived{id: h.ID &^ fromServer, kind: h.Type, flags: h.Flags, body: body}
	back.role.n = 1
	_, err := back.deliver(false) // more may have been read
	return err
}

// fromServer is the bit of ids that servers choose.
const fromServer = 1 << 63

// relay gives the frames of a server's calls to the connection that they go over.
type relay struct {
	net.Conn // for its addresses
	to       *serverConn
	part     []byte // of a frame
}

// Close leaves the connection alone.
func (r *relay) Close() error { return nil }

// Write passes on what are whole frames by now, with the ids of a server. It waits while the client does
// not take what was sent before.
func (r *relay) Write(p []byte) (int, error) {
	r.part = append(r.part, p...)
	whole := 0
	for len(r.part)-whole >= wire.HeaderSize {
		frame := r.part[whole:]
		end := wire.HeaderSize + int(getUint32(frame))
		if len(frame) < end {
			break
		}
		if id := getUint64(frame[idOffset:]); id != 0 {
			putUint64(frame[idOffset:], id|fromServer)
		}
		whole += end
	}
	if err := r.to.pass(r.part[:whole]); err != nil {
		return 0, err
	}
	r.part = r.part[:copy(r.part, r.part[whole:])]
	if len(r.part) == 0 && cap(r.part) > maxKeptOut {
		r.part = nil
	}
	return len(p), nil
}

// pass sends frames that were made elsewhere.
func (c *serverConn) pass(frames []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.waitRoomLocked(context.Background()); err != nil {
		return err
	}
	if c.closing {
		return errConnClosed
	}
	c.appendLocked(frames)
	if !c.writing {
		c.flushLocked(true)
	}
	return nil
}

// backBusy reports whether calls of the server are open on the connection.
func (c *serverConn) backBusy() bool {
	back := c.back.Load()
	return back != nil && back.busy.Load() > 0
}

// SessionGrace sets for how long the session of a client that was lost goes on; the default is 30 s. Only
// sessions that somebody has in hand do: see [SessionFrom], [Server.Sessions] and [OnSession]. While there are
// more sessions than [MaxConns], none does.
func SessionGrace(d time.Duration) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(d >= 0, "anser.SessionGrace(%v): want at least 0", d) {
			o.sessionGrace = d
		}
	})
}

// OnSession sets a function that is called, on a goroutine of its own, with every session that begins. The
// server waits for it when it stops; the session's Done tells of the end.
func OnSession(f func(*Session)) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(f != nil, "anser.OnSession: the function is nil") {
			o.onSession = f
		}
	})
}

// callee is what a client's connection needs to take calls of the server.
type callee struct {
	conn  *serverConn
	state *reading
}

// Handlers lets the servers that the client is connected to call the methods of s: the client has a
// [Session] there. It connects at once, and again when a connection is lost, without waiting for a call.
//
// The limits of s hold for the calls of all servers together, so that none can flood the client: [MaxInFlight],
// [MaxCalls] for each connection, [MaxMessage]. Handlers run on goroutines of their own. Streams are refused.
// Calls of a server are not subject to [Authenticate] and [Authorize] of s: TLS has proven the server, and a client
// without TLS takes the calls of whoever answers.
// s need not listen, but may, and may serve several clients, and methods may be added later. Clients of one
// process with the same s share their connections, and so their sessions. Close s after the clients.
func Handlers(s *Server) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(s != nil, "anser.Handlers: the server is nil: leave the option out for a client that takes no calls") {
			o.handlers = s
		}
	})
}

// attach prepares s for the calls that clients pass on to it.
func (s *Server) attach() error {
	if err := s.usable(); err != nil {
		return fmt.Errorf("anser.Handlers: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrServerClosed
	}
	if len(s.mistakes) > 0 {
		return fmt.Errorf("anser.Handlers: the server cannot serve: %w", errors.Join(s.mistakes...))
	}
	s.serving = true
	return nil
}

// newSessionID returns a number that nobody guesses: who knows it can take over the session of a client
// without a certificate.
func newSessionID() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return max(getUint64(b[:]), 1)
}

// called handles METHOD, REQUEST and CANCEL of a server. It runs on the goroutine that reads, and does not
// wait.
func (c *clientConn) called(h wire.Header, body []byte) error {
	srv := c.host.handlers
	if srv == nil {
		return wire.Errorf(wire.BadFrame, "%s frame from a server, but this client takes no calls", h.Type)
	}
	if h.Type != wire.TypeMethod && h.ID&fromServer == 0 {
		return wire.Errorf(wire.BadID, "%s with the id %d, which a server does not choose", h.Type, h.ID)
	}
	to := c.callee.Load()
	if to == nil {
		to = newCallee(c, srv)
		c.callee.Store(to)
	}
	in, s := to.conn, to.state
	h.ID &^= fromServer
	s.now = nanotime()
	s.arrived = s.now
	c.pings = pingLimit{}
	var err error
	switch h.Type {
	case wire.TypeMethod:
		return in.nameMethod(s, body)
	case wire.TypeCancel:
		return in.cancel(s, h, body)
	default:
		if h.Flags&wire.FlagStream != 0 {
			err = in.refuseStream(s, h)
		} else {
			_, err = in.request(s, h, body)
		}
	}
	if len(s.out) > 0 {
		err = errors.Join(err, c.answerAtOnce(s.out))
		s.out = s.out[:0]
	}
	return err
}

func newCallee(c *clientConn, srv *Server) *callee {
	in := &serverConn{server: srv, far: c}
	in.writer.init(c.nc, &c.wg, &in.streams)
	if tc, ok := c.nc.(interface{ ConnectionState() tls.ConnectionState }); ok {
		state := tc.ConnectionState()
		in.tls = &state
	}
	in.peerSays = c.peer
	srv.mu.Lock()
	if srv.attached == nil {
		srv.attached = make(map[*serverConn]struct{})
	}
	srv.attached[in] = struct{}{}
	srv.mu.Unlock()
	return &callee{in, &reading{generation: 1}}
}

// refuseStream refuses a stream, which only clients open.
func (c *serverConn) refuseStream(s *reading, h wire.Header) error {
	if h.ID <= s.lastID {
		return wire.Errorf(wire.BadID, "REQUEST with id %d after %d: ids must grow", h.ID, s.lastID)
	}
	s.lastID = h.ID
	c.server.stats.refused.Add(1)
	b := refusal(Unimplemented, "a client takes no streams").body()
	s.out = c.appendError(s.out, h.ID, 0, &b)
	return nil
}

// answerAtOnce sends refusals. A server that makes calls and does not read the answers loses the connection.
func (c *clientConn) answerAtOnce(frame []byte) error {
	putUint64(frame[idOffset:], getUint64(frame[idOffset:])|fromServer)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil
	}
	if len(c.buf) > 2*maxBuffered {
		return wire.Errorf(wire.Flood, "calls that are refused, and whose answers nobody reads")
	}
	c.appendLocked(frame)
	c.flushElsewhereLocked()
	return nil
}

// answerFar is answer for a call of a server to its client.
func (c *serverConn) answerFar(id uint64, frame []byte) {
	c.mu.Lock()
	c.detached--
	open := c.running.Take(id) != nil
	c.mu.Unlock()
	if !open || len(frame) == 0 {
		return
	}
	putUint64(frame[idOffset:], id|fromServer)
	far := c.far
	far.mu.Lock()
	defer far.mu.Unlock()
	if far.waitRoomLocked(context.Background()) == nil {
		far.appendLocked(frame)
		far.flushElsewhereLocked()
	}
}

// end cancels the handlers that run, after the connection has ended.
func (in *callee) end() {
	c := in.conn
	c.server.mu.Lock()
	delete(c.server.attached, c)
	c.server.mu.Unlock()
	c.cancelAll(errConnClosed)
}

func (c *serverConn) cancelAll(err error) {
	c.mu.Lock()
	var lost []*callContext
	c.running.Each(func(ctx *callContext) {
		// The caller of one with a key comes back for the reply, over another connection.
		if ctx.brought == nil || ctx.brought.key == "" || c.server.stopping.Load() {
			lost = append(lost, ctx)
		} else if c.trust != nil {
			c.server.orphans.add(ctx) // while c.mu is held: finishDetached removes it behind that
		}
	})
	c.running = idtable.Table[*callContext]{}
	c.mu.Unlock()
	for _, ctx := range lost {
		if st := ctx.stream(); st != nil {
			st.stop(failure(Unavailable, OutcomeUnknown, PhaseWait, err, "the connection was lost: %v", err))
		}
		ctx.end(context.Canceled)
	}
}

// busyHere reports whether calls of the server run on this side of the connection.
func (c *clientConn) busyHere() bool {
	to := c.callee.Load()
	if to == nil {
		return false
	}
	to.conn.mu.Lock()
	defer to.conn.mu.Unlock()
	return to.conn.detached > 0
}
