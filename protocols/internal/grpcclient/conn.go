// Package grpcclient lets an Anser client call gRPC servers. Its [Conn] looks to the client
// like a connection to an Anser server: it takes and returns Anser's frames, and speaks HTTP/2
// and gRPC with the server. Translation happens in the calls of Write and Read, on the goroutines
// of the client.
//
// frames.go and open.go take the client's frames, reader.go and answer.go the server's, and
// stream.go and receive.go have the state of a call between them, for its messages in either
// direction. write.go writes to the server.
package grpcclient

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysconn"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/wire"
)

const (
	smallBuffer = 4 << 10
	largeBuffer = 64 << 10
	maxOut      = 1 << 20   // bytes that may wait to be written before the client waits
	maxPending  = 16 << 20  // bytes that may wait for credit of the server before the client waits
	maxQueued   = 10_000    // calls of a connection, open and waiting
	sendWindow  = 256 << 10 // bytes of a stream that the client may send before they have left
	connWindow  = 1 << 20   // the same for all streams of the connection
	maxHeader   = 80 << 10  // of an answer, as HPACK counts it
	maxParts    = 32        // frames of one header
)

// Conn is a connection to a gRPC server. Reads are made by one goroutine at a time, and so are
// writes; the other methods are safe for concurrent use.
type Conn struct {
	nc        net.Conn
	authority string

	// Owned by the goroutine that reads.
	buf     []byte
	r, w    int // buf[r:w] was not handled yet
	decoder *hpack.Decoder
	block   block

	mu       sync.Mutex // guards the fields below, and is held while frames are translated
	room     sync.Cond  // signalled when out was written, and at the end
	err      error      // why the connection has ended, for Read
	up       []byte     // frames for the client
	upAt     int        // up[:upAt] was read
	reading  bool       // Read waits for the server
	woken    bool       // the deadline is in the past, so that Read looks at up
	deadline time.Time  // of reads, as the client wants it

	socket     *sysconn.Writer // nil: writes may block
	out, spare []byte          // frames for the server
	rest       []byte          // of a write that would have blocked
	writing    bool
	headers    headerWriter

	greeted  bool // the client's preface was read
	shaken   bool // and answered
	partial  []byte
	client   wire.Settings // of the client
	token    string        // value of the header authorization
	methods  []*method
	calls    map[uint64]*stream // by the id of the client
	streams  map[uint32]*stream // by the id in HTTP/2
	queue    []*stream          // wait for others to end
	lastID   uint32
	most     int   // streams that the server allows at once
	initial  int64 // the server's window of a new stream
	credit   int64 // bytes of DATA that the server accepts
	blocked  []*stream
	free     [][]byte // buffers of messages
	sweeper  *time.Timer
	sweeping bool

	// Credit between the client and this side, in bytes of Anser's DATA bodies.
	pending  int   // bytes of calls that wait for credit of the server
	sent     int64 // have left, and were not returned to the client yet
	upCredit int64 // that the client accepts
	held     []*stream
	overhead int64 // heads of DATA bodies that the client returns, and the server did not send

	window   int64 // bytes that the server may still send
	returned int64 // consumed, and not given back to the server yet

	leaving  bool      // the client was told to open no more calls here
	left     bool      // the client has agreed
	bye      bool      // the client was told that the connection has ended
	finalID  uint32    // last stream that the server serves, once it is leaving
	pinged   mono.Time // when the last PING was sent; 0: never
	answered bool      // the server has sent an answer since
	waiting  uint64    // value of the client's PING that the server has not answered
	pinging  bool
	controls int // frames of the server since the last part of an answer
}

// New returns the connection after the exchange of settings with the server. address is the one
// that was dialed. A deadline of nc bounds it.
func New(nc net.Conn, address string) (net.Conn, error) {
	c := &Conn{
		nc: nc, authority: address, buf: make([]byte, smallBuffer),
		calls: make(map[uint64]*stream), streams: make(map[uint32]*stream),
		most: maxQueued, initial: h2.InitialWindow, credit: h2.InitialWindow, window: h2.InitialWindow,
		finalID: h2.MaxWindow,
	}
	scheme := "http"
	if tc, ok := nc.(interface{ ConnectionState() tls.ConnectionState }); ok {
		if state := tc.ConnectionState(); state.NegotiatedProtocol != "h2" {
			return nil, fmt.Errorf("the server does not offer HTTP/2 by ALPN (it has chosen %q), and gRPC needs it", state.NegotiatedProtocol)
		}
		scheme = "https"
	}
	c.room.L = &c.mu
	c.headers.init(scheme, address)
	c.decoder = hpack.NewDecoder(4096, c.block.emit)
	c.decoder.SetMaxStringLength(maxHeader)
	c.out = append(c.out, h2.Preface...)
	c.out = appendSettings(c.out, setting{h2.SettingPush, 0}, setting{h2.SettingWindow, sendWindow}, setting{h2.SettingMaxHeader, maxHeader})
	c.out = h2.AppendWindowUpdate(c.out, 0, connWindow-h2.InitialWindow)
	c.window = connWindow
	if err := c.greet(); err != nil {
		return nil, err
	}
	// What the server has sent behind its settings may be all that it sends: it may wait for the
	// client.
	if c.handleLocked(); c.err != nil {
		return nil, c.err
	}
	if c.socket = sysconn.NewWriter(nc); c.socket != nil {
		return &direct{c}, nil
	}
	if tc, ok := nc.(tlsConn); ok {
		return &secured{c, tc}, nil
	}
	return c, nil
}

type tlsConn interface {
	ConnectionState() tls.ConnectionState
}

// secured is a connection with TLS.
type secured struct {
	*Conn
	tlsConn
}

// direct is a connection whose writes need not block.
type direct struct{ *Conn }

type setting struct {
	id    uint16
	value uint32
}

func appendSettings(b []byte, settings ...setting) []byte {
	b = append(b, h2.FrameHeader(6*len(settings), h2.FrameSettings, 0, 0)...)
	for _, s := range settings {
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, s.id), s.value)
	}
	return b
}

// greet sends the preface and waits for the settings of the server.
func (c *Conn) greet() error {
	if _, err := c.nc.Write(c.out); err != nil {
		return err
	}
	c.out = c.out[:0]
	for {
		if kind, flags, id, p, ok, err := c.next(); err != nil {
			return err
		} else if ok {
			if kind != h2.FrameSettings || flags&h2.FlagAck != 0 {
				return fmt.Errorf("is it a server of gRPC without TLS? its first frame has type %d", kind)
			}
			return c.frameLocked(kind, flags, id, p)
		}
		if _, err := c.fill(); err != nil {
			if c.w > 0 {
				return fmt.Errorf("the server does not answer as one of gRPC (%.16q): %w", c.buf[:c.w], err)
			}
			return err
		}
	}
}

// fill reads from the server.
func (c *Conn) fill() (int, error) {
	switch {
	case c.r == c.w:
		c.r, c.w = 0, 0
	case c.r > 0:
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	if c.w == len(c.buf) {
		c.buf = append(make([]byte, 0, largeBuffer), c.buf...)[:largeBuffer]
	}
	n, err := c.nc.Read(c.buf[c.w:])
	c.w += n
	if c.w == len(c.buf) && len(c.buf) < largeBuffer {
		c.buf = append(make([]byte, 0, largeBuffer), c.buf...)[:largeBuffer]
	}
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// Read returns frames for the client.
func (c *Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.upAt < len(c.up) {
			n := copy(p, c.up[c.upAt:])
			if c.upAt += n; c.upAt == len(c.up) {
				if cap(c.up) > largeBuffer {
					c.up = nil
				}
				c.up, c.upAt = c.up[:0], 0
			}
			return n, nil
		}
		if c.err != nil {
			return 0, c.err
		}
		if len(c.out) > 0 && !c.writing {
			c.flushLocked(false)
			continue
		}
		c.reading = true
		c.mu.Unlock()
		n, err := c.fill()
		c.mu.Lock()
		c.reading = false
		if n > 0 {
			c.handleLocked()
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if !c.woken {
				return 0, err
			}
			c.woken = false
			c.nc.SetReadDeadline(c.deadline)
			continue
		}
		c.endLocked(err)
	}
}

// wakeLocked makes a Read that waits for the server return what is in up.
func (c *Conn) wakeLocked() {
	if c.reading && !c.woken && len(c.up) > c.upAt {
		c.woken = true
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// endLocked notes the end of the connection. Calls that the server has not seen are refused, so
// that they can be made elsewhere.
func (c *Conn) endLocked(err error) {
	if c.err != nil {
		return
	}
	for _, st := range c.queue {
		c.refuseLocked(st.call, st.oneway, wire.Unavailable, "the connection to the server has ended")
		delete(c.calls, st.call)
	}
	c.queue = nil
	if c.leaving && len(c.streams) == 0 {
		c.byeLocked()
	}
	c.err = err
	if c.sweeper != nil {
		c.sweeper.Stop()
	}
	c.room.Broadcast()
	c.wakeLocked()
}

// faultLocked ends the connection because of what the server has sent.
func (c *Conn) faultLocked(err error) {
	code := h2.InternalError
	if fault, ok := errors.AsType[*h2.ConnError](err); ok {
		code = fault.Code
	}
	c.out = append(c.out, h2.FrameHeader(8, h2.FrameGoAway, 0, 0)...)
	c.out = binary.BigEndian.AppendUint32(append(c.out, 0, 0, 0, 0), uint32(code))
	c.flushLocked(false)
	c.endLocked(fmt.Errorf("the server of gRPC breaks HTTP/2: %w", err))
}

// Close ends the connection.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.endLocked(net.ErrClosed)
	c.mu.Unlock()
	return c.nc.Close()
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	if c.woken {
		return nil // Read sets it
	}
	return c.nc.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.nc.SetWriteDeadline(t) }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }
