// Package host connects a network connection to the server that runs its calls. Requests of one
// connection can have different credentials: each credential has a connection of its own at the
// server, whose identity follows the rules of all others.
package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
)

// Conn is one network connection.
type Conn struct {
	Server *anser.Server
	Peer   anser.Peer

	protocol string
	draining chan struct{} // closed when the client should use another server
	once     sync.Once
	drain    func()
	close    func(error)
	base     *anser.ProtocolConn // of requests without a credential

	proofs chan struct{} // full while maxProofs credentials are checked

	mu     sync.Mutex // guards the fields below
	others map[[sha256.Size]byte]*login
	wrong  int // credentials that were not accepted
	closed bool

	sockets map[int]func() // functions that end what has taken over the connection or a stream
	socket  int            // key of the last one
	none    chan struct{}  // closed when there are none; nil while nothing waits for that
}

const (
	maxLogins = 1000 // credentials that a connection may use at once
	maxWrong  = 100  // credentials of a connection that are checked in vain
	maxProofs = 16   // credentials of a connection that are checked at once: each counts as a connection
)

// login is a credential of the connection.
type login struct {
	conn  *anser.ProtocolConn
	err   error
	done  chan struct{} // closed when conn or err is set
	ready bool
}

// Open adds a connection of a protocol to the server. drain is called when the client should use
// another server, and close when the connection must end, with nil after a drain.
func Open(s *anser.Server, protocol string, peer anser.Peer, drain func(), end func(error)) (*Conn, error) {
	c := &Conn{Server: s, Peer: peer, protocol: protocol, draining: make(chan struct{}), drain: drain, close: end, proofs: make(chan struct{}, maxProofs)}
	base, err := s.OpenConn(peer, anser.ProtocolHooks{
		Protocol: protocol,
		Drain:    func(time.Duration) { c.startDrain() }, Gradual: true,
		Close: c.closeBase,
	})
	if err != nil {
		return nil, err
	}
	c.base = base
	return c, nil
}

func (c *Conn) startDrain() {
	c.once.Do(func() { close(c.draining) })
	c.drain()
}

// Drained refuses further calls, after drain was called and the client has heard of it. The last
// HTTP/1.1 calls end their connections themselves.
func (c *Conn) Drained() {
	c.base.Drained()
	c.mu.Lock()
	var others []*anser.ProtocolConn
	for _, l := range c.others {
		if l.ready {
			others = append(others, l.conn)
		}
	}
	c.mu.Unlock()
	for _, conn := range others {
		conn.Drained()
	}
}

// Draining returns a channel that is closed when the client should use another server.
func (c *Conn) Draining() <-chan struct{} { return c.draining }

// closeBase is called when the connection must end.
func (c *Conn) closeBase(why error) {
	if why == nil {
		c.close(nil)
		return
	}
	go func() {
		if !errors.Is(why, anser.ErrServerClosed) {
			c.awaitSockets() // whose calls were cut off tell their clients why
		}
		c.endSockets()
		c.close(why)
	}()
}

// Hold and Release count bytes of requests that are not complete; see [anser.ProtocolConn.Hold].
func (c *Conn) Hold(n int) bool { return c.base.Hold(n) }

func (c *Conn) Release(n int) { c.base.Release(n) }

// AddSocket adds what has taken over the connection, or a stream of it: end tells its client that
// the server goes away. The caller calls remove at its end.
func (c *Conn) AddSocket(end func()) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sockets == nil {
		c.sockets = make(map[int]func())
	}
	c.socket++
	key := c.socket
	c.sockets[key] = end
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.sockets, key)
		if len(c.sockets) == 0 && c.none != nil {
			close(c.none)
			c.none = nil
		}
	}
}

// awaitSockets waits a moment for the sockets to end by themselves.
func (c *Conn) awaitSockets() {
	c.mu.Lock()
	if len(c.sockets) == 0 {
		c.mu.Unlock()
		return
	}
	if c.none == nil {
		c.none = make(chan struct{})
	}
	none := c.none
	c.mu.Unlock()
	select {
	case <-none:
	case <-time.After(farewell):
	}
}

// endSockets ends them, before the connection is closed. It waits a moment for their clients.
func (c *Conn) endSockets() {
	c.mu.Lock()
	ends := slices.Collect(maps.Values(c.sockets))
	c.mu.Unlock()
	if len(ends) == 0 {
		return
	}
	var all sync.WaitGroup
	for _, end := range ends {
		all.Go(end)
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(farewell):
	}
}

// farewell is how long sockets may take to end by themselves, and then a client to confirm the end.
const farewell = 200 * time.Millisecond

// End removes the connection from the server.
func (c *Conn) End(err error) {
	c.mu.Lock()
	c.closed = true
	others := c.others
	c.others = nil
	c.mu.Unlock()
	for _, l := range others {
		<-l.done
		if l.conn != nil {
			l.conn.End(err)
		}
	}
	c.base.End(err)
}

// Known returns the connection at the server for requests with this Authorization header, or why
// there is none. ok is false if a credential must be checked first: see With.
func (c *Conn) Known(authorization string) (pc *anser.ProtocolConn, fault *anser.Error, ok bool) {
	token, ok := bearer(authorization)
	if !ok || !c.Server.Authenticates() {
		return c.base, nil, true
	}
	key := sha256.Sum256([]byte(token))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errGone, true
	}
	if l := c.others[key]; l != nil && l.ready {
		return l.conn, nil, true
	}
	return nil, nil, false
}

// With calls f with the connection at the server for requests with this Authorization header, or
// with why there is none. f is called before With returns, or by another goroutine if a credential
// must be checked first.
func (c *Conn) With(authorization string, f func(*anser.ProtocolConn, *anser.Error)) {
	if pc, fault, ok := c.Known(authorization); ok {
		f(pc, fault)
		return
	}
	token, _ := bearer(authorization)
	key := sha256.Sum256([]byte(token))
	c.mu.Lock()
	l := c.others[key]
	switch {
	case c.closed:
		c.mu.Unlock()
		f(nil, errGone)
		return
	case l != nil && l.ready:
		c.mu.Unlock()
		f(l.conn, nil)
		return
	case l == nil && (len(c.others) >= maxLogins || c.wrong >= maxWrong):
		c.mu.Unlock()
		f(nil, errManyLogins)
		return
	}
	first := l == nil
	if first {
		l = &login{done: make(chan struct{})}
		if c.others == nil {
			c.others = make(map[[sha256.Size]byte]*login)
		}
		c.others[key] = l
	}
	c.mu.Unlock()
	go func() {
		if first {
			c.proofs <- struct{}{}
			c.prove(key, l, token)
			<-c.proofs
		}
		<-l.done
		switch {
		case errors.Is(l.err, anser.ErrServerClosed):
			f(nil, errGone)
		case l.err != nil:
			f(nil, errUnknown)
		default:
			f(l.conn, nil)
		}
	}()
}

// Login is With for a caller that may wait.
func (c *Conn) Login(authorization string) (pc *anser.ProtocolConn, fault *anser.Error) {
	done := make(chan struct{})
	c.With(authorization, func(p *anser.ProtocolConn, f *anser.Error) {
		pc, fault = p, f
		close(done)
	})
	<-done
	return pc, fault
}

var (
	errGone       = anser.Refuse(anser.Unavailable, "the connection has ended")
	errUnknown    = anser.Refuse(anser.Unauthenticated, "the credential is not accepted")
	errManyLogins = anser.Refuse(anser.ResourceExhausted, "the connection has used too many credentials: use another one")
)

// schemeToken is the value of auth.SchemeToken.
const schemeToken = "token"

// prove checks a credential.
func (c *Conn) prove(key [sha256.Size]byte, l *login, token string) {
	forget := func() {
		c.mu.Lock()
		if c.others[key] == l {
			delete(c.others, key)
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	over := c.closed || c.wrong >= maxWrong
	c.mu.Unlock()
	if over { // while it waited
		l.err = errManyLogins
		forget()
		close(l.done)
		return
	}
	// Requests after the end of the identity try the credential again.
	conn, err := c.base.Share(anser.ProtocolHooks{
		Protocol: c.protocol,
		Gradual:  true,
		Drain: func(time.Duration) {
			select {
			case <-c.draining: // until Drained
				return
			default:
			}
			forget()
			go func() {
				<-l.done
				if l.conn != nil {
					l.conn.Drained()
				}
			}()
		},
		Close: func(why error) {
			forget()
			go func() {
				<-l.done
				if l.conn != nil {
					l.conn.End(why)
				}
			}()
		},
	})
	if err == nil {
		if err = conn.Authenticate(context.Background(), schemeToken, []byte(token)); err != nil {
			conn.End(err)
			conn = nil
		}
	}
	c.mu.Lock()
	l.conn, l.err = conn, err
	l.ready = err == nil
	if err != nil {
		c.wrong++
		if c.others[key] == l {
			delete(c.others, key)
		}
	}
	c.mu.Unlock()
	close(l.done)
}

// bearer returns the token of an Authorization header.
func bearer(authorization string) (token string, ok bool) {
	scheme, token, _ := strings.Cut(authorization, " ")
	token = strings.TrimSpace(token)
	return token, token != "" && strings.EqualFold(scheme, "Bearer")
}

type contextKey struct{}

// NewContext returns a context with the connection, for handlers of net/http.
func NewContext(ctx context.Context, c *Conn) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// FromContext returns the connection of a request, or nil.
func FromContext(ctx context.Context) *Conn {
	c, _ := ctx.Value(contextKey{}).(*Conn)
	return c
}
