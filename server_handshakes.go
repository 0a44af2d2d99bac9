package anser

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/sysconn"
	"github.com/anser-rpc/anser/wire"
)

// handshakes holds the places of the connections that are in their handshake. When all are taken, a newcomer
// gets the place of the one that has kept the server waiting longest: peers that connect and say nothing
// would otherwise shut everybody else out for as long as a handshake may take.
//
// A client says its first words as soon as it is connected: its preface, or with TLS its ClientHello. Who has
// not done so after helloGrace is slow or hostile. With TLS the second words come a round trip later, and
// the server has paid for the first ones, so answerGrace is longer. Neither is cut off while what it said
// waits in the socket: then it is the server that is slow, as when thousands of clients come back at once.
type handshakes struct {
	places int
	bound  time.Duration // of a handshake
	stats  *stats
	freed  chan struct{} // has a value when a place became free; several may share one

	mu       sync.Mutex // guards what follows
	taken    int
	unheard  list.List // of *guest: the first words of these are due, the earliest at the front
	answered list.List // of *guest: their second words are due, likewise
	late     int64     // nanoseconds by which timers are late: a process that gets no processor cannot blame its peers
}

const (
	helloGrace  = 50 * time.Millisecond
	answerGrace = 500 * time.Millisecond
)

// pendingHandshake is a connection in its handshake. What is in it is guarded by the mutex of handshakes.
type pendingHandshake struct {
	hall   *handshakes
	nc     net.Conn
	socket sysconn.ReadQueue
	asked  bool          // socket can be asked
	line   *list.List    // where it waits, or nil
	at     *list.Element // of line
	due    int64         // nanotime until which it may keep the server waiting
	out    bool          // its place was given to another one
}

func (h *handshakes) init(places int, bound time.Duration, s *stats) {
	h.places, h.bound, h.stats = places, bound, s
	h.freed = make(chan struct{}, 1)
}

// enter gives nc a place, for which it may have to wait, and begins the time of its handshake. It returns nil
// when stopping says so before there is a place.
func (h *handshakes) enter(nc net.Conn, stopping func() bool) *pendingHandshake {
	for {
		h.mu.Lock()
		wait, ok := h.roomLocked(nanotime())
		if ok {
			g := h.admitLocked(nc)
			h.mu.Unlock()
			return g
		}
		h.mu.Unlock()
		if stopping() {
			return nil
		}
		began, timer := nanotime(), time.NewTimer(wait)
		select {
		case <-h.freed:
		case <-timer.C:
			h.noteLate(nanotime() - began - int64(wait))
		}
		timer.Stop()
	}
}

// noteLate notes by how much a timer was late.
func (h *handshakes) noteLate(d int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.late = max(d, h.late-(h.late-d)/4)
}

const (
	lateFactor = 8 // how many times as late as a timer a handshake may be: it needs processors several times, on both sides
	mostLate   = 4 * time.Second
)

// roomLocked sees to it that there is a place, or returns how long to wait before the next attempt.
func (h *handshakes) roomLocked(now int64) (wait time.Duration, ok bool) {
	if h.taken < h.places {
		return 0, true
	}
	wait = answerGrace
	now -= min(lateFactor*h.late, int64(mostLate), int64(h.bound/2))
	for _, line := range [...]*list.List{&h.unheard, &h.answered} {
		for e := line.Front(); e != nil; e = line.Front() {
			g := e.Value.(*pendingHandshake)
			if g.due > now {
				wait = min(wait, time.Duration(g.due-now))
				break
			}
			if g.asked && g.socket.Len() > 0 {
				h.expectLocked(g, line, nanotime())
				continue
			}
			h.evictLocked(g)
			return 0, true
		}
	}
	return wait, false
}

// admitLocked enters nc. The deadline is set here and not by the goroutine of the connection, as that one could
// undo what turnOutLocked does.
func (h *handshakes) admitLocked(nc net.Conn) *pendingHandshake {
	g := &pendingHandshake{hall: h, nc: nc}
	g.socket, g.asked = sysconn.NewReadQueue(nc)
	h.taken++
	nc.SetDeadline(time.Now().Add(h.bound))
	line := &h.unheard
	if _, ok := nc.(secured); ok || !g.asked { // it may be in the middle of a handshake below this one
		line = &h.answered
	}
	h.expectLocked(g, line, nanotime())
	if h.taken < h.places {
		h.tellLocked() // somebody else may wait too
	}
	return g
}

// expectLocked enters that the guest owes its next words.
func (h *handshakes) expectLocked(g *pendingHandshake, line *list.List, now int64) {
	grace := helloGrace
	if line == &h.answered {
		grace = answerGrace
	}
	g.due = now + int64(grace)
	if g.line == line {
		line.MoveToBack(g.at)
		return
	}
	h.forgetLocked(g)
	g.line, g.at = line, line.PushBack(g)
}

func (h *handshakes) forgetLocked(g *pendingHandshake) {
	if g.line != nil {
		g.line.Remove(g.at)
		g.line, g.at = nil, nil
	}
}

// evictLocked takes the guest's place away. Its goroutine finds out by the deadline.
func (h *handshakes) evictLocked(g *pendingHandshake) {
	h.forgetLocked(g)
	g.out = true
	h.taken--
	g.nc.SetDeadline(time.Unix(1, 0))
	h.stats.hit(limitHandshakes)
}

func (h *handshakes) tellLocked() {
	select {
	case h.freed <- struct{}{}:
	default:
	}
}

// answers notes that the server is answering the guest's first words.
func (g *pendingHandshake) answers() {
	h := g.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	if !g.out {
		h.expectLocked(g, &h.answered, nanotime())
	}
}

// heard notes that nothing more is due from the guest: it keeps its place until it leaves. The result is
// false when it has lost the place already.
func (g *pendingHandshake) heard() bool {
	h := g.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgetLocked(g)
	return !g.out
}

// leave gives the guest's place back.
func (g *pendingHandshake) leave() {
	h := g.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgetLocked(g)
	if g.out {
		return
	}
	h.taken--
	h.tellLocked()
}

// turnedOut tells a client that its place was given to another one, unless nc is nil, and returns that as an
// error. Nothing is unread, so closing the connection destroys nothing, and nobody has to wait for the client.
func (s *Server) turnedOut(nc net.Conn) error {
	err := wire.Errorf(wire.Overload, "the server is at its limit of %d connections in their handshake, and this one kept it waiting (anser.MaxHandshakes)", s.o.maxHandshakes)
	s.stats.close(err.Reason)
	if nc != nil {
		nc.SetDeadline(time.Now().Add(byeBound))
		nc.Write(wire.AppendClose(wire.AppendPreface(nil), err.Reason, err.Text))
	}
	return err
}

// errTurnedOut says that turnedOut is due.
var errTurnedOut = errors.New("the connection has lost its place")

type guestKey struct{}

// shakeHands is the handshake of TLS of a guest.
func (g *pendingHandshake) shakeHands(tc *tls.Conn) error {
	err := tc.HandshakeContext(context.WithValue(context.Background(), guestKey{}, g))
	if err == nil {
		g.answers() // its preface may come with the end of the handshake, or a little later
	}
	return err
}

// noticing returns config with a hook by which guests are noticed that have sent their ClientHello.
func noticing(config *tls.Config) *tls.Config {
	config = config.Clone()
	choose := config.GetConfigForClient
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if g, ok := hello.Context().Value(guestKey{}).(*pendingHandshake); ok {
			g.answers()
		}
		if choose == nil {
			return nil, nil
		}
		return choose(hello)
	}
	return config
}
