// Package handshakes bounds how many connections of a server are in their handshake.
package handshakes

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysconn"
)

// Places holds the places of connections in their handshake. When all are taken, a new connection
// gets the place of the one that has kept the server waiting longest: otherwise peers that connect
// and send nothing would keep out all others for as long as a handshake may take.
//
// A client sends its first bytes as soon as it is connected: its preface, or with TLS its
// ClientHello. A client that has not done so after helloGrace is slow or hostile. With TLS its
// next bytes come a round trip later, and the server has paid for the first ones, so answerGrace
// is longer. No connection loses its place while bytes of it wait in the socket: then the server
// is slow, as when thousands of clients reconnect at once.
//
// All methods are safe for concurrent use.
type Places struct {
	config Config
	freed  chan struct{} // has a value when a place became free; several places may share one

	mu       sync.Mutex // guards the fields below
	taken    int
	unheard  list.List     // of *Pending: their first bytes are due, the earliest at the front
	answered list.List     // of *Pending: their next bytes are due, likewise
	late     time.Duration // by which timers are late: a process that gets no processor must not blame its peers
}

// Config configures Places.
type Config struct {
	Places  int           // number of places
	Timeout time.Duration // time of a handshake
	Evicted func()        // called, with a lock held, when a connection loses its place
}

const (
	helloGrace  = 50 * time.Millisecond
	answerGrace = 500 * time.Millisecond
)

// Pending is a connection in its handshake. Its methods are safe for concurrent use.
type Pending struct {
	places *Places
	nc     net.Conn
	socket sysconn.ReadQueue
	asked  bool // socket can be asked

	// Guarded by Places.mu.
	line    *list.List    // in which it waits, or nil
	at      *list.Element // of line
	due     mono.Time     // until which it may keep the server waiting
	own     bool          // the caller sets the deadlines
	evicted bool
}

// New returns places that are free.
func New(c Config) *Places { return &Places{config: c, freed: make(chan struct{}, 1)} }

// Enter waits for a place for nc, and sets the deadline of its handshake. It
// returns nil when stopping reports true before there is a place.
func (p *Places) Enter(nc net.Conn, stopping func() bool) *Pending {
	for {
		p.mu.Lock()
		wait, ok := p.roomLocked(mono.Now())
		if ok {
			c := p.admitLocked(nc)
			p.mu.Unlock()
			return c
		}
		p.mu.Unlock()
		if stopping() {
			return nil
		}
		began, timer := mono.Now(), time.NewTimer(wait)
		select {
		case <-p.freed:
		case <-timer.C:
			p.noteLate(mono.Since(began) - wait)
		}
		timer.Stop()
	}
}

// noteLate notes by how much a timer was late.
func (p *Places) noteLate(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = max(d, p.late-(p.late-d)/4)
}

const (
	lateFactor = 8 // a handshake may be late by this many times a timer: both sides need processors several times
	mostLate   = 4 * time.Second
)

// roomLocked makes sure that there is a place, or returns how long to wait before the next
// attempt.
func (p *Places) roomLocked(now mono.Time) (wait time.Duration, ok bool) {
	if p.taken < p.config.Places {
		return 0, true
	}
	wait = answerGrace
	now = now.Add(-min(lateFactor*p.late, mostLate, p.config.Timeout/2))
	for _, line := range [...]*list.List{&p.unheard, &p.answered} {
		for e := line.Front(); e != nil; e = line.Front() {
			c := e.Value.(*Pending)
			if c.due > now {
				wait = min(wait, c.due.Sub(now))
				break
			}
			if c.asked && c.socket.Len() > 0 {
				p.expectLocked(c, line, mono.Now())
				continue
			}
			p.evictLocked(c)
			return 0, true
		}
	}
	return wait, false
}

// admitLocked enters nc. It sets the deadline itself: the goroutine of the connection could undo
// what evictLocked does.
func (p *Places) admitLocked(nc net.Conn) *Pending {
	c := &Pending{places: p, nc: nc}
	c.socket, c.asked = sysconn.NewReadQueue(nc)
	p.taken++
	nc.SetDeadline(time.Now().Add(p.config.Timeout))
	line := &p.unheard
	// A connection over TLS may be in the middle of a handshake below this one.
	if _, ok := nc.(interface{ ConnectionState() tls.ConnectionState }); ok || !c.asked {
		line = &p.answered
	}
	p.expectLocked(c, line, mono.Now())
	if p.taken < p.config.Places {
		p.tellLocked() // another connection may wait too
	}
	return c
}

// expectLocked enters that the next bytes of the connection are due.
func (p *Places) expectLocked(c *Pending, line *list.List, now mono.Time) {
	grace := helloGrace
	if line == &p.answered {
		grace = answerGrace
	}
	c.due = now.Add(grace)
	if c.line == line {
		line.MoveToBack(c.at)
		return
	}
	p.forgetLocked(c)
	c.line, c.at = line, line.PushBack(c)
}

func (p *Places) forgetLocked(c *Pending) {
	if c.line != nil {
		c.line.Remove(c.at)
		c.line, c.at = nil, nil
	}
}

// evictLocked takes the connection's place away. Its goroutine notices by the deadline, or by the
// end of the connection.
func (p *Places) evictLocked(c *Pending) {
	p.forgetLocked(c)
	c.evicted = true
	p.taken--
	if c.own {
		c.nc.Close()
	} else {
		c.nc.SetDeadline(time.Unix(1, 0))
	}
	p.config.Evicted()
}

func (p *Places) tellLocked() {
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// Answering notes that the server is answering the connection's first bytes.
func (c *Pending) Answering() {
	p := c.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.evicted {
		p.expectLocked(c, &p.answered, mono.Now())
	}
}

// Awaiting notes, after Heard, that the server waits for bytes again, which the client may send as
// early as its first ones.
func (c *Pending) Awaiting() {
	p := c.places
	p.mu.Lock()
	defer p.mu.Unlock()
	line := &p.unheard
	if !c.asked {
		line = &p.answered
	}
	if !c.evicted {
		p.expectLocked(c, line, mono.Now())
	}
}

// Heard notes that no more bytes are due from the connection: it keeps its place until Leave. It
// returns false if the connection has lost its place already.
func (c *Pending) Heard() bool {
	p := c.places
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetLocked(c)
	return !c.evicted
}

// Leave gives the connection's place back. It must be called once.
func (c *Pending) Leave() {
	p := c.places
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetLocked(c)
	if c.evicted {
		return
	}
	p.taken--
	p.tellLocked()
}

// OwnDeadlines ends the deadline of the handshake. From now on the caller sets deadlines, and the
// connection is closed if it loses its place. It returns false if that has happened already.
func (c *Pending) OwnDeadlines() bool {
	p := c.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.evicted {
		return false
	}
	c.own = true
	c.nc.SetDeadline(time.Time{})
	return true
}

// AwaitHello waits for the first bytes of a client of TLS, whose Config is not from ObserveHello.
// Without it, every client would have the time of a client that has sent its ClientHello. If the
// connection ends meanwhile, the handshake reports why.
func (c *Pending) AwaitHello() {
	if c.asked {
		c.socket.Wait()
		c.Answering()
	}
}

type pendingKey struct{}

// HandshakeTLS does the handshake of TLS on tc, whose Config is from ObserveHello.
func (c *Pending) HandshakeTLS(tc *tls.Conn) error {
	err := tc.HandshakeContext(context.WithValue(context.Background(), pendingKey{}, c))
	if err == nil {
		c.Answering() // its preface may come with the end of the handshake, or a little later
	}
	return err
}

// ObserveHello returns a copy of config with which HandshakeTLS notices the ClientHello.
func ObserveHello(config *tls.Config) *tls.Config {
	config = config.Clone()
	choose := config.GetConfigForClient
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if c, ok := hello.Context().Value(pendingKey{}).(*Pending); ok {
			c.Answering()
		}
		if choose == nil {
			return nil, nil
		}
		return choose(hello)
	}
	return config
}
