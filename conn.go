package anser

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// ALPN is the protocol name in the TLS handshake: see docs/protocol.md §1.
const ALPN = "anser/1"

// conn is the part of a connection that clients and servers share. Its writer, the credit of its
// streams and the open calls on it share one lock.
type conn struct {
	writer
	streams  streams
	peer     wire.Settings // of the other side
	progress progress

	closing bool // nothing is sent after the CLOSE of this side; guarded by mu

	minPing time.Duration // least time between two pings of the peer
	pings   pingLimit     // owned by the reader goroutine
	pinged  mono.Atomic   // time of a ping without an answer yet, or 0
	asked   mono.Time     // time of the last ping; owned by tend
}

// init prepares c for writing to nc. wg counts its background goroutines.
func (c *conn) init(nc net.Conn, wg *sync.WaitGroup, minPing time.Duration) {
	c.writer.init(nc, wg, &c.streams)
	c.progress.upkeep = &c.upkeep
	c.minPing = minPing
}

// post sends a small frame without waiting.
func (c *conn) post(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.postLocked(frame)
}

// takesFramesLocked reports whether frames may be appended.
func (c *conn) takesFramesLocked() bool { return c.err == nil && !c.closing }

func (c *conn) postLocked(frame []byte) {
	if c.takesFramesLocked() {
		c.appendLocked(frame)
		c.flushInBackgroundLocked()
	}
}

// maxKeptMessage is the size up to which the buffers of a call are kept for another one. The
// pools that hold them are emptied by the garbage collector, so a burst of large messages does
// not stay.
const maxKeptMessage = 8 << 20

// frameOverhead is how many bytes a frame may hold in addition to its message.
const frameOverhead = 64 << 10

// maxHello is the size limit of a frame before the end of the handshake, less than any MaxMessage
// allows later.
const maxHello = 64 << 10

// helloSize is room for the preface and the settings of most peers, and for a small call.
const helloSize = 256

const maxTimeout = 100 * 365 * 24 * time.Hour // keeps points in time within an int64 of nanoseconds

const idOffset = 8

const attemptOffset = wire.HeaderSize + 6

// The offsets of the type and the flags in a frame.
const (
	typeOffset  = 4
	flagsOffset = 5
)

const requestCompressionOffset = wire.HeaderSize + 5

// The offsets of the compression in the frame of a REQUEST and of a REPLY.
const (
	replyCompressionOffset = wire.HeaderSize + 1
)

const methodOffset = wire.HeaderSize

// closedByPeer turns a CLOSE frame into an error.
func closedByPeer(body []byte) error {
	reason, text, err := wire.ParseClose(body)
	if err != nil {
		return err
	}
	if reason == wire.Normal {
		return errPeerClosed
	}
	return &peerClosed{reason, text}
}

// peerClosed is the error of a connection that the peer closed with a reason.
type peerClosed struct {
	reason wire.Reason
	text   string
}

func (e *peerClosed) Error() string {
	if e.text == "" {
		return "the other side closed the connection: " + e.reason.String()
	}
	return "the other side closed the connection: " + e.text + " (" + e.reason.String() + ")"
}

var errPeerClosed = errors.New("the other side closed the connection")

// errUnauthenticated is the error that every rejected client gets, whatever the reason.
var errUnauthenticated = wire.Errorf(wire.Unauthenticated, "unauthenticated")

// isUnauthenticated reports whether a server closed the connection because the client did not
// authenticate. An [Observer] that refuses a connection has a text of its own.
func isUnauthenticated(err error) bool {
	closed, ok := errors.AsType[*peerClosed](err)
	return ok && closed.reason == wire.Unauthenticated && closed.text == errUnauthenticated.Text
}

// errNoMemory is what fill returns when the buffer cannot grow because of the server's limit.
var errNoMemory = errors.New("no memory for a frame")

// scratch holds the buffers for messages before or after compression.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

func putScratch(b *[]byte) {
	if cap(*b) <= maxKeptMessage {
		scratch.Put(b)
	}
}

// unmarshal decodes into a value, which is zero if it is fresh.
func unmarshal(cd codec.Codec, payload []byte, v any, fresh bool) error {
	if f, ok := cd.(codec.FreshUnmarshaler); ok && fresh {
		return f.UnmarshalFresh(payload, v)
	}
	return cd.Unmarshal(payload, v)
}

// errConnClosed is the error of a send on a connection that this side closed.
var errConnClosed = errors.New("the connection is closed")

// fromServer is the bit of ids that servers choose.
const fromServer = 1 << 63

// frameLimit describes the limit of a side that accepts frames of maxFrame bytes, using the
// number that its user passed to [MaxMessage].
func frameLimit(maxFrame uint64) string {
	if maxFrame <= frameOverhead { // another implementation
		return fmt.Sprintf("%d bytes", maxFrame)
	}
	return fmt.Sprintf("%d bytes for a message and %d for what goes with it", maxFrame-frameOverhead, frameOverhead)
}
