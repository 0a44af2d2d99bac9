package anser

import (
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysusage"
)

// A readToken, or turn, is the word by which a goroutine owns the reading of a connection: a
// generation in the upper half and a tick in the lower one. Its last bit says that a handler is
// running, and the one before that it holds up what was read behind its request, or replies that
// are not written yet.
type readToken uint64

const (
	turnRuns uint32 = 1 << iota
	turnMore
	nextTurn
)

func makeReadToken(generation, tick uint32) readToken {
	return readToken(generation)<<32 | readToken(tick)
}

func (t readToken) running() bool { return uint32(t)&turnRuns != 0 }

func (t readToken) more() bool { return uint32(t)&turnMore != 0 }

// idle is the turn after the handler has returned.
func (t readToken) idle() readToken { return t &^ readToken(turnRuns|turnMore) }

// endedToken is the word after the end of the connection, whose monitor forgets it at once.
const endedToken = 0

// next is the turn with which another goroutine takes over.
func (t readToken) next() readToken { return (t>>32 + 1) << 32 }

// monitor finds handlers that block the reader goroutine of their connection for long, and starts
// another goroutine that goes on reading. It sleeps while no handler runs.
type monitor struct {
	mu      sync.Mutex // guards the fields below
	conns   []*serverConn
	running bool // the goroutine exists
	closed  bool
	wg      sync.WaitGroup
}

// starvationCheck tells whether the process kept its processors since the check before last. If
// it did not, a handler that did not end may just not have been running.
type starvationCheck [2]int64

func (c *starvationCheck) next() bool {
	now := sysusage.CurrentProcess().Preempted
	still := now == c[1]
	c[1], c[0] = c[0], now
	return still
}

const (
	monitorCoarse = 4 * time.Millisecond   // until the next check
	monitorFine   = time.Millisecond       // until the check whether the same handler is still running
	monitorAlert  = 100 * time.Millisecond // for this long after a handoff the fine interval is used
	monitorQuiet  = 50                     // checks without a new turn after which a connection is forgotten

	// If the process lost its processors in the meantime, a handler most likely just did not run,
	// and a handoff costs more than waiting: this many checks must find the same turn again.
	monitorPatience = 4

	// If nothing waits on the connection, the handler holds up nothing. It may be waiting for the
	// garbage collector, together with those of many other connections. The number is small since
	// each check costs a system call.
	monitorAlone = 16
)

// watch adds a connection whose watched flag is not set.
func (m *monitor) watch(c *serverConn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || !c.watched.CompareAndSwap(false, true) {
		return
	}
	c.seen, c.same = 0, 0
	m.conns = append(m.conns, c)
	if !m.running {
		m.running = true
		m.wg.Go(m.run)
	}
}

// run checks in pairs: the second check shows whether a handler is stuck. Checking every
// millisecond instead takes 5 % of the throughput with 100 callers: each check wakes a thread.
func (m *monitor) run() {
	timer := time.NewTimer(monitorFine)
	defer timer.Stop()
	var quiet starvationCheck
	var alert mono.Time // time until which the fine interval is used
	fine := false
	for range timer.C {
		kept := quiet.next()
		running, stuck, handoffs := false, false, false
		m.mu.Lock()
		m.conns = slices.DeleteFunc(m.conns, func(c *serverConn) bool {
			switch c.look(kept) {
			case sawNothing:
				return true
			case sawRunning:
				running = true
			case sawStuck:
				stuck = true
			case sawHandoff:
				handoffs = true
			}
			return false
		})
		if m.closed || len(m.conns) == 0 {
			m.running = false
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
		now := mono.Now()
		if handoffs {
			alert = now.Add(monitorAlert)
		}
		fine = stuck || now < alert || running && !fine
		if fine {
			timer.Reset(monitorFine)
		} else {
			timer.Reset(monitorCoarse)
		}
	}
}

// observation is the result of one check of a connection.
type observation int

const (
	sawIdle    observation = iota
	sawNothing             // for a long time: the connection need not be watched any more
	sawRunning             // a handler that did not run at the last check
	sawStuck               // the handler of the last check
	sawHandoff             // the same, and another goroutine reads now
)

func (m *monitor) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.wg.Wait()
}

// look hands off the reading if the handler of the last check is still running. kept says that
// the process kept its processors.
func (c *serverConn) look(kept bool) observation {
	t := readToken(c.token.Load())
	if t == endedToken {
		return sawNothing
	}
	if t != c.seen {
		c.seen, c.same = t, 0
		if t.running() {
			return sawRunning
		}
		return sawIdle
	}
	c.same++
	if t.running() {
		if !kept && c.same < monitorPatience || c.same < monitorAlone && c.nothingWaits(t) {
			return sawStuck
		}
		c.reassignReader(t, kept)
		return sawHandoff
	}
	if c.same < monitorQuiet {
		return sawIdle
	}
	// The reader stores its turn and then loads watched. The monitor does both in the opposite
	// order, so one of them sees the other.
	c.watched.Store(false)
	if now := readToken(c.token.Load()); now != t && c.watched.CompareAndSwap(false, true) {
		c.seen, c.same = now, 0
		return sawIdle
	}
	return sawNothing
}

// nothingWaits reports whether the handler of the turn holds up nothing, also not the end of the
// connection.
func (c *serverConn) nothingWaits(t readToken) bool {
	if t.more() || c.verdict.Load() != nil {
		return false
	}
	c.mu.Lock()
	socket := c.state.socket
	c.mu.Unlock()
	return socket != nil && socket.Silent()
}
