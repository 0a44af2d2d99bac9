package plain

import (
	"sync"

	"github.com/anser-rpc/anser/protocols/internal/host"
)

const (
	inboxSize  = 64 << 10 // bytes of messages that wait before the reader does
	inboxEntry = 64       // bytes that a message counts for, in addition to its own
)

// inbox holds the messages of a client that the handler has not received yet.
type inbox struct {
	host *host.Conn

	mu      sync.Mutex // guards the fields below
	changed sync.Cond
	queue   []inMessage
	bytes   int
	end     error // after the queue; nil: there may be more
	stopped error // in place of all
}

// inMessage is a message, of which the server's memory counts held bytes.
type inMessage struct {
	data []byte
	held int
}

func newInbox(h *host.Conn) *inbox {
	b := &inbox{host: h}
	b.changed.L = &b.mu
	return b
}

// put adds a message, and reports whether there is room for another one, or the inbox is stopped.
// Otherwise the caller calls await before the next one.
func (b *inbox) put(m inMessage) (room bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped != nil {
		b.host.Release(m.held)
		return true
	}
	b.queue = append(b.queue, m)
	b.bytes += len(m.data) + inboxEntry
	b.changed.Broadcast()
	return b.bytes < inboxSize
}

// await waits until there is room for a message, or the inbox is stopped.
func (b *inbox) await() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.bytes >= inboxSize && b.stopped == nil {
		b.changed.Wait()
	}
}

// close adds the end of the messages, of which the first one counts.
func (b *inbox) close(end error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end == nil {
		b.end = end
	}
	b.changed.Broadcast()
}

// stop makes take return why from now on, and drops what it holds.
func (b *inbox) stop(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped != nil {
		return
	}
	b.stopped = why
	for _, m := range b.queue {
		b.host.Release(m.held)
	}
	b.queue, b.bytes = nil, 0
	b.changed.Broadcast()
}

// take waits for the next message. The caller releases what it holds.
func (b *inbox) take() (inMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch {
		case b.stopped != nil:
			return inMessage{}, b.stopped
		case len(b.queue) > 0:
			m := b.queue[0]
			b.queue[0] = inMessage{}
			b.queue = b.queue[1:]
			b.bytes -= len(m.data) + inboxEntry
			b.changed.Broadcast()
			return m, nil
		case b.end != nil:
			return inMessage{}, b.end
		}
		b.changed.Wait()
	}
}
