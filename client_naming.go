package anser

import (
	"errors"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// maxNumberedMethods is the number of names that a process numbers: see maxKnownMethods.
const maxNumberedMethods = 1 << 16

// methodName is a method as connections know it.
type methodName struct {
	name   string
	number uint32 // in the pool; maxNumberedMethods: the method has no number
}

// naming is the state of the method names that a connection has announced to the peer. It is
// guarded by the mutex of the connection.
type naming struct {
	numbers  []uint32          // by the number of the method in the pool; 0: not named yet
	further  map[string]uint32 // for methods without such a number
	named    uint32            // number of methods named on the connection
	replaced bool              // a successor is being made, or has been made
}

// replaceAfter is the number of names after which a connection gets a successor. The remaining
// names must suffice until the successor is ready.
const replaceAfter = wire.MaxMethods - wire.MaxMethods/8

// nameLocked gives the method a number. A connection with few numbers left is replaced by another
// one.
func (c *callerHalf) nameLocked(m *methodName) uint32 {
	if c.named >= replaceAfter && !c.replaced && !c.own {
		c.replaced = true
		c.background.Add(1)
		go c.replace()
	}
	if c.named == wire.MaxMethods {
		return 0
	}
	c.named++
	if m.number == maxNumberedMethods {
		if c.further == nil {
			c.further = make(map[string]uint32)
		}
		c.further[m.name] = c.named
	} else {
		if need := int(m.number) + 1 - len(c.numbers); need > 0 {
			c.numbers = append(c.numbers, make([]uint32, need)...)
		}
		c.numbers[m.number] = c.named
	}
	c.appendLocked(wire.AppendMethod(nil, c.named, m.name))
	return c.named
}

// errNamesUsedUp fails an attempt on a connection whose successor is not ready yet. The attempt is
// retried.
func errNamesUsedUp() *Error {
	return failure(Unavailable, NotSent, PhaseWrite, nil,
		"the connection has named %d methods, the limit of the protocol, and is about to be replaced", wire.MaxMethods)
}

// peerDrainer asks the peer for another connection, which only the peer can make.
type peerDrainer interface{ drainPeer() }

// replace makes a successor and then takes the connection out of use. Calls in flight finish. For
// the calls of a server, only its client can make a successor.
func (c *callerHalf) replace() {
	defer c.background.Done()
	if c.dialed == nil {
		c.host.remove(c, errAway)
		c.successor.drainPeer()
		return
	}
	if c.host.succeed(c) {
		return
	}
	time.AfterFunc(redialAtOnce, func() { // the next name tries again
		c.mu.Lock()
		c.replaced = false
		c.mu.Unlock()
	})
}

// succeed starts a connection that replaces c, and reports whether it did.
func (h *host) succeed(c *callerHalf) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.mayConnectLocked() || mono.Now() < h.growAfter {
		return false
	}
	h.beginLocked() // c may have ended
	h.wg.Go(func() {
		next, err := h.connect(false)
		if h.enter(next, err, false) == nil {
			c.dialed.leave()
			return
		}
		c.mu.Lock()
		c.replaced = false
		c.mu.Unlock()
	})
	return true
}

// leave takes the connection out of use, and tells the server, which closes it when nothing is
// open.
func (c *clientConn) leave() {
	c.mu.Lock()
	was := c.draining
	c.draining = true
	c.mu.Unlock()
	if !was {
		c.host.remove(&c.callerHalf, nil)
		c.post(wire.AppendDrain(nil, 0, 0))
	}
}

var errAway = errors.New("the client is away")
