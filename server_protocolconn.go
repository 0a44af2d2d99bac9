package anser

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/upkeep"
	"github.com/anser-rpc/anser/wire"
)

// ProtocolHooks are the functions with which a server controls a connection of another protocol.
// They must not wait for the client, since the server calls them for one connection after the
// other.
type ProtocolHooks struct {
	// Protocol is the name of the protocol for [Server.Conns], such as "HTTP/2"; it may be empty.
	Protocol string
	// Drain is called once if the client should use another server: the server shuts down, the
	// connection was idle for [IdleTimeout], or the identity ends soon or was not renewed. grace
	// is how long open calls may go on. New calls are refused from now on, unless Gradual is set.
	Drain func(grace time.Duration)
	// Gradual says that the protocol tells its clients of a drain, which takes a while: new calls
	// are admitted until the protocol calls [ProtocolConn.Drained].
	Gradual bool
	// Close is called if the connection must end, with the reason, or with nil after a drain when
	// no call is open any more. It may be called more than once. The protocol then calls End.
	Close func(why error)
}

// ProtocolConn is a connection over which clients call the methods of a [Server] with another
// protocol than Anser's own, such as net/rpc's. The protocol reads requests and writes replies.
// Everything in between is done by the server in the same way for all protocols: addresses,
// limits, priorities, authentication, policies, interceptors, observers, counters, and drain.
// Package netrpc is built on it.
//
// The methods are safe for concurrent use.
type ProtocolConn struct {
	conn    *serverConn
	remote  Peer
	hooks   ProtocolHooks
	lastID  atomic.Uint64
	hints   atomic.Int64  // names of methods for which a hint was looked for
	proving chan struct{} // full while a credential is checked; nil without authentication

	// Connections of Share: the one that they share, how many calls they have had, and have open,
	// and how many of them have an identity.
	within     *ProtocolConn
	guestCalls atomic.Uint64
	guestsOpen atomic.Int64
	guestsIn   atomic.Int64

	names   sync.Mutex // guards methods; held while the policy is called
	methods map[string]*named

	mu     sync.Mutex  // guards the fields below
	opened bool        // the observers were called
	login  *time.Timer // closes a connection whose client does not authenticate, or nil
	ended  bool
	in     bool          // it counts in guestsIn of within
	cuts   int           // answers to calls that were cut off, under way
	told   chan struct{} // closed when there are none; nil while nothing waits for that
}

// OpenConn adds a connection of another protocol to the server. Its TLS handshake is complete;
// remote has the two addresses and the state of TLS. The server counts it, passes it to the
// observers, and applies the rules of other connections: [AllowFrom] and [DenyFrom], [MaxConns],
// and the protection that a connection from another machine needs. On a server with
// [Authenticate], a certificate in remote.TLS is tried at once; without an identity, calls fail
// with Unauthenticated until [ProtocolConn.Authenticate] has succeeded, and the connection is
// closed after [HandshakeTimeout].
//
// remote.Local decides whether the connection needs protection: without it, the caller must check
// that. [AllowFrom] and [DenyFrom] need an IP address in remote.Addr; MaxConns does not count the
// connection before OpenConn.
//
// The error says why the server does not accept the connection, which the caller closes.
// Otherwise the caller must call End when the connection has ended; [Server.Shutdown] waits for
// that. The hooks may be called before OpenConn returns, since Shutdown may be called at the same
// time.
func (s *Server) OpenConn(remote Peer, hooks ProtocolHooks) (*ProtocolConn, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	return s.openConn(remote, hooks, nil)
}

// Share adds a connection for another client of the same network connection, as behind a proxy
// whose requests have credentials of their own. It is as OpenConn, and p is not idle for
// [IdleTimeout] while the new connection is in use, and needs no identity of its own while that
// has one. Each of the two needs End.
func (p *ProtocolConn) Share(hooks ProtocolHooks) (*ProtocolConn, error) {
	if p.within != nil {
		p = p.within
	}
	return p.conn.server.openConn(p.remote, hooks, p)
}

func (s *Server) openConn(remote Peer, hooks ProtocolHooks, within *ProtocolConn) (*ProtocolConn, error) {
	if hooks.Drain == nil || hooks.Close == nil {
		return nil, errors.New("anser.OpenConn: a hook is nil: both are called")
	}
	if !s.addresses.Load().allow(remote.Addr) {
		s.stats.wrongAddress.Add(1)
		return nil, fmt.Errorf("the address %s may not connect", addressOf(remote.Addr))
	}
	c := newServerConn(s)
	c.tls, c.peer = remote.TLS, wire.DefaultSettings()
	p := &ProtocolConn{conn: c, remote: remote, hooks: hooks, within: within}
	c.protocol = p
	if len(s.o.authenticators) > 0 {
		c.auth, p.proving = new(connAuth), make(chan struct{}, 1)
	}
	if err := s.enter(p); err != nil {
		return nil, err
	}
	decided := false
	defer func() {
		if !decided { // an observer or authenticator panicked, from which a caller such as net/http recovers, or ended the goroutine
			p.End(errUndecided)
		}
	}()
	err := p.welcome()
	decided = true
	if err != nil {
		p.End(err)
		return nil, err
	}
	return p, nil
}

var errUndecided = errors.New("an observer or authenticator panicked on the connection, or ended its goroutine")

// welcome passes a new connection to the observers, or has the client authenticate itself first.
func (p *ProtocolConn) welcome() error {
	c := p.conn
	if c.auth == nil {
		return p.open(nil)
	}
	if state := c.tls; state != nil && len(state.VerifiedChains) > 0 {
		if unwanted, err := p.prove(context.Background(), &AuthRequest{Scheme: SchemeTLS, Peer: c.peerInfo()}); unwanted {
			return err
		}
	}
	p.awaitLogin()
	return nil
}

// enter counts the connection, unless the server cannot accept it.
func (s *Server) enter(p *ProtocolConn) error {
	if err := s.checkPeer(&p.remote); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrServerClosed
	case len(s.mistakes) > 0:
		return fmt.Errorf("the server cannot serve: %w", errors.Join(s.mistakes...))
	case len(s.live)+len(s.raw) >= s.o.maxConns:
		s.stats.hit(limitConns)
		return over(limitConns, "the server is at its limit of %d connections (anser.MaxConns)", s.o.maxConns)
	}
	s.serving = true
	s.beginTendingLocked()
	s.live[p.conn] = struct{}{}
	s.upkeep.Add(&p.conn.upkeep, mono.Now().Add(upkeep.Interval), p.conn.tend)
	s.conns.Add(1)
	if !p.remote.accepted {
		s.stats.accepted.Add(1)
	}
	return nil
}

// open passes the connection to the observers, once. Any of them may refuse it. id is the
// identity that the client gets after that.
func (p *ProtocolConn) open(id *Identity) error {
	p.mu.Lock()
	opened := p.opened || p.ended
	p.opened = true
	p.mu.Unlock()
	if opened {
		return nil
	}
	accepted := false
	defer func() { // also if an observer panics
		p.mu.Lock()
		p.opened = accepted
		p.mu.Unlock()
	}()
	info := p.conn.info()
	info.Peer.Identity = id
	err := p.conn.server.o.observers.connOpened(info)
	accepted = err == nil
	return err
}

// awaitLogin closes the connection unless it gets an identity in time.
func (p *ProtocolConn) awaitLogin() {
	bound := p.conn.server.o.handshakeTimeout
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn.auth.now.Load() != nil || p.ended {
		return
	}
	p.login = time.AfterFunc(bound, func() {
		c := p.conn
		if c.auth.now.Load() == nil && p.guestsIn.Load() == 0 {
			c.server.countAuthFailure(c, nothingShown, errors.New("no credential in time"))
			p.close(fmt.Errorf("the client did not authenticate itself within %v (anser.HandshakeTimeout)", bound))
		}
	})
}

// Authenticate checks a credential of the client, which it overwrites, and applies the identity
// that it proves. The error is for the log: a client learns only that it is not authenticated. A
// later credential renews the identity; one that proves nothing starts a drain, and one of
// another subject closes the connection, as over Anser's own protocol. Without [Authenticate] on
// the server it does nothing. It returns when the authenticators and the observers have answered,
// within [HandshakeTimeout], and may call both hooks before. The protocol decides how often a
// client may present a credential.
func (p *ProtocolConn) Authenticate(ctx context.Context, scheme string, data []byte) error {
	c := p.conn
	if c.auth == nil {
		return nil
	}
	if ctx == nil {
		clear(data)
		return errNoLoginContext
	}
	login := &AuthRequest{Scheme: scheme, Data: data, Peer: c.peerInfo()}
	select {
	case p.proving <- struct{}{}:
		defer func() { <-p.proving }()
	case <-ctx.Done():
		clear(data)
		return ctx.Err()
	}
	if c.auth.now.Load() != nil {
		return c.renewWith(ctx, login)
	}
	unwanted, err := p.prove(ctx, login)
	if unwanted {
		p.close(err)
	}
	return err
}

var errNoLoginContext = errors.New("anser.ProtocolConn.Authenticate: the context is nil: pass context.Background()")

// prove checks the first credential of the client, and applies the identity that it proves unless
// an observer refuses the connection. Until then there is no identity, and no call is admitted.
func (p *ProtocolConn) prove(ctx context.Context, login *AuthRequest) (unwanted bool, err error) {
	c := p.conn
	ctx, cancel := context.WithTimeout(ctx, c.server.o.handshakeTimeout)
	defer cancel()
	now, reason, err := c.server.authenticate(ctx, login)
	if err != nil {
		c.server.countAuthFailure(c, reason, err)
		return false, err
	}
	if err := p.open(now.identity); err != nil {
		return true, err
	}
	p.mu.Lock()
	if p.within != nil && !p.ended {
		p.in = true
		p.within.guestsIn.Add(1) // End takes it back
	}
	p.mu.Unlock()
	c.auth.now.Store(now)
	c.upkeep.Stir()
	return false, nil
}

// Identity returns the current identity of the client, or nil.
func (p *ProtocolConn) Identity() *Identity { return p.conn.identity() }

// NeedsLogin reports whether the client must authenticate before it can call.
func (p *ProtocolConn) NeedsLogin() bool { return p.conn.auth != nil && p.conn.auth.now.Load() == nil }

// Authenticates reports whether the server has [Authenticate], so that its clients must
// authenticate.
func (s *Server) Authenticates() bool { return s.usable() == nil && len(s.o.authenticators) > 0 }

// CheckPeer returns an error if OpenConn would refuse the connection because other machines reach
// it and it lacks protection. It is for protocols that send such a client an answer of their own.
func (s *Server) CheckPeer(remote Peer) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.checkPeer(&remote)
}

// MaxMessageSize returns the size in bytes of the largest message that the server accepts; see
// [MaxMessage].
func (s *Server) MaxMessageSize() int {
	if s.usable() != nil {
		return 0
	}
	return s.o.maxMessage
}

// Hold counts n bytes that the protocol holds for requests that it has not passed to Admit yet, and
// reports whether the server has room for them; see [MaxMemory]. The protocol calls Release with
// the same number when it holds them no more, before Admit, which counts the message again. It is
// not needed for requests of a few KiB.
func (p *ProtocolConn) Hold(n int) bool { return p.conn.server.memory.Take(n) }

// Release takes back n bytes of Hold.
func (p *ProtocolConn) Release(n int) { p.conn.server.memory.Give(n) }

// Drain refuses new calls, and calls the hooks as for a drain that the server starts. It returns
// at once.
func (p *ProtocolConn) Drain(grace time.Duration) { p.conn.startDrain(grace) }

// Drained refuses new calls because the client knows of the drain and makes no more here. The
// connection ends when no call is open. A protocol with [ProtocolHooks].Gradual calls it once after
// Drain; further calls have no effect. It returns at once.
func (p *ProtocolConn) Drained() {
	p.conn.mu.Lock()
	p.conn.draining, p.conn.acked = true, true
	p.conn.mu.Unlock()
	p.endDrained()
}

// End removes the connection after it has ended, and ends the contexts of its calls. err is the
// reason, for the observers; nil or io.EOF means that one of the two sides ended it regularly.
// Running calls are still answered through respond, and admitted calls still need Run or Refuse.
// No further call is admitted. The hooks are not called for events after End, but one that was
// called before may still run. End may be called by a hook, and more than once.
func (p *ProtocolConn) End(err error) {
	c := p.conn
	p.mu.Lock()
	ended, opened, in := p.ended, p.opened, p.in
	p.ended, p.in = true, false
	if p.login != nil {
		p.login.Stop()
	}
	p.mu.Unlock()
	if ended {
		return
	}
	c.mu.Lock()
	c.draining, c.acked, c.closing = true, true, true // no call after cancelAll, and no hook
	c.mu.Unlock()
	defer func() { // also if an observer panics
		c.server.remove(c)
		c.server.conns.Done()
	}()
	c.cancelAll(err)
	if c.auth != nil {
		c.auth.end()
		if in && p.within.guestsIn.Add(-1) == 0 {
			p.within.awaitLogin()
		}
	}
	if opened {
		c.server.o.observers.connClosed(c.info(), err)
	} else {
		c.server.o.observers.connFailed(c.info(), err)
	}
}

// began counts a call that is open now, for the connection that p shares.
func (p *ProtocolConn) began() {
	if w := p.within; w != nil {
		w.guestCalls.Add(1)
		w.guestsOpen.Add(1)
		w.conn.upkeep.Stir()
	}
	p.conn.upkeep.Stir() // the server sees no bytes of this protocol
}

// finished takes back a call of began.
func (p *ProtocolConn) finished() {
	if w := p.within; w != nil {
		w.guestsOpen.Add(-1)
	}
}

// guests returns how many calls the connections of Share have had, and whether some are open. A nil
// p has none.
func (p *ProtocolConn) guests() (calls uint64, open bool) {
	if p == nil {
		return 0, false
	}
	open = p.guestsOpen.Load() > 0 // before calls, so that a call which ends in between is seen there
	return p.guestCalls.Load(), open
}

// draining reports whether new calls are refused.
func (p *ProtocolConn) draining() bool {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	return p.conn.acked
}

// tell runs respond on a goroutine of its own, for a call that was cut off.
func (p *ProtocolConn) tell(respond func()) {
	p.mu.Lock()
	p.cuts++
	p.mu.Unlock()
	p.conn.spawn(func() {
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.cuts--; p.cuts == 0 && p.told != nil {
				close(p.told)
				p.told = nil
			}
		}()
		respond()
	})
}

// closeTold is close when the answers to calls that were cut off have been passed to the protocol.
// A client that does not read them must not delay it.
func (p *ProtocolConn) closeTold(why error) {
	p.mu.Lock()
	if p.cuts == 0 {
		p.mu.Unlock()
		p.close(why)
		return
	}
	if p.told == nil {
		p.told = make(chan struct{})
	}
	told := p.told
	p.mu.Unlock()
	p.conn.spawn(func() {
		select {
		case <-told:
		case <-time.After(byeBound):
		}
		p.close(why)
	})
}

// close asks the protocol to end the connection, unless it has ended.
func (p *ProtocolConn) close(why error) {
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	if ended {
		return
	}
	if why == error(serverClosed) {
		why = ErrServerClosed
	}
	p.hooks.Close(why)
}

// endDrained asks the protocol to end a connection that refuses calls and on which none is open.
func (p *ProtocolConn) endDrained() {
	c := p.conn
	c.mu.Lock()
	over := c.acked && !c.closing && c.detached == 0
	c.closing = c.closing || over
	c.mu.Unlock()
	if over {
		p.close(nil)
	}
}
