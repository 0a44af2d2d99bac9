package h2

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser/internal/mono"
)

// Conn is a connection of a client.
type Conn struct {
	config *Config
	nc     net.Conn

	// Owned by the reader goroutine.
	buf        []byte
	r, w       int  // buf[r:w] was not handled yet
	quiet      int  // reads in a row that a small buffer would have held
	slow       bool // the rest of a frame or header must arrive in time
	framed     bool // a frame or header was complete since that time was set
	decoder    *hpack.Decoder
	block      headerBlock
	blockID    uint32 // stream of that header; 0: none
	blockFlags byte
	blockParts int
	settled    bool // the first SETTINGS have arrived
	lastID     uint32
	recent     [32]uint32 // ids of the streams that were opened last
	recentAt   int
	resets     rateLimit
	controls   rateLimit

	lastRead mono.Atomic // when bytes arrived last

	mu         sync.Mutex // guards the fields below
	room       sync.Cond  // signalled when out was written, and at the end
	err        error      // why the connection has ended
	streams    map[uint32]*Stream
	opened     int    // number of them
	lastOpened uint32 // id of the last one
	out, spare []byte
	writing    bool
	deadline   mono.Time // of writes, as far as it was set; owned by the goroutine that has set writing
	headers    headerWriter
	credit     int64     // bytes of DATA that may be sent
	peerWindow int64     // initial window of the client's streams
	blocked    []*Stream // have data, and wait for credit of the connection
	window     int64     // bytes that the client may still send
	returned   int64     // bytes that were consumed, and not given back to the client yet
	goneAway   bool      // the client was told to open no more streams
	closing    bool      // the last GOAWAY was sent: later streams are refused
	finalID    uint32
	drained    bool // Drained was called
	finish     bool // close when everything is written
	dismissed  error
	sweeper    *time.Timer
	sweeping   bool // it is set
	round      int  // of the sweeper
	keeper     *time.Timer
	asked      mono.Time // when the client was sent a PING that it has not answered; 0: never
	pings      pingLimit
	ended      bool
}

const (
	smallBuffer = 4 << 10
	largeBuffer = 64 << 10
	maxOut      = 1 << 20 // bytes that may wait to be written before answers wait
	keepOut     = 64 << 10
	maxParts    = 32 // frames of one header
)

// New returns a connection that was accepted. begin are bytes that were read already.
func New(nc net.Conn, begin []byte, config *Config) *Conn {
	c := &Conn{
		config: config, nc: nc, streams: make(map[uint32]*Stream), resets: newResets(), controls: newControls(),
		credit: InitialWindow, peerWindow: InitialWindow, window: int64(max(config.ConnWindow, InitialWindow)),
	}
	c.buf = make([]byte, max(smallBuffer, len(begin)))
	c.w = copy(c.buf, begin)
	c.room.L = &c.mu
	c.headers.init()
	c.decoder = hpack.NewDecoder(4096, c.block.emit)
	c.decoder.SetMaxStringLength(config.MaxHeader)
	c.sendSettings() // before the GOAWAY of a server that shuts down now
	return c
}

// Serve serves the connection until it ends, and closes it. The error is io.EOF if the client has
// closed it, and nil after Finish.
func (c *Conn) Serve() error {
	c.beginKeepalive()
	err := c.read()
	if fault, ok := errors.AsType[*ConnError](err); ok {
		c.sayGoodbye(fault)
	}
	c.end(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finish && c.err == errFinished {
		return nil
	}
	return c.err
}

var errFinished = errors.New("the connection was drained")

// end ends all streams and closes the connection.
func (c *Conn) end(err error) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended = true
	if c.err == nil {
		c.err = err
	}
	err = c.err
	var receivers []Receiver
	for _, st := range c.streams {
		if st.receiver != nil {
			receivers = append(receivers, st.receiver)
		}
		st.closeLocked()
	}
	c.streams, c.blocked = nil, nil
	if c.sweeper != nil {
		c.sweeper.Stop()
	}
	if c.keeper != nil {
		c.keeper.Stop()
	}
	c.room.Broadcast()
	c.mu.Unlock()
	c.nc.Close()
	for _, r := range receivers {
		r.Reset(err)
	}
}

// Close ends the connection at once.
func (c *Conn) Close(err error) { c.end(err) }

// read handles frames until one is wrong or reading fails.
func (c *Conn) read() error {
	for c.w-c.r < len(Preface) {
		n := c.w - c.r
		if string(c.buf[c.r:c.w]) != Preface[:n] {
			return connError(ProtocolError, "the preface is wrong")
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
	if string(c.buf[c.r:c.r+len(Preface)]) != Preface {
		return connError(ProtocolError, "the preface is wrong")
	}
	c.r += len(Preface)
	for {
		if c.w-c.r < HeaderSize {
			if err := c.fill(); err != nil {
				return err
			}
			continue
		}
		h := c.buf[c.r:]
		size := int(h[0])<<16 | int(h[1])<<8 | int(h[2])
		kind, flags, id := h[3], h[4], binary.BigEndian.Uint32(h[5:])&MaxWindow
		if size > MaxFrame {
			return c.tooLarge(kind, id)
		}
		if c.w-c.r < HeaderSize+size {
			if err := c.fill(); err != nil {
				return err
			}
			continue
		}
		payload := h[HeaderSize : HeaderSize+size]
		c.r += HeaderSize + size
		if err := c.frame(kind, flags, id, payload); err != nil {
			return err
		}
		c.framed = c.framed || c.blockID == 0
	}
}

// tooLarge returns the fault of a frame over the limit.
func (c *Conn) tooLarge(kind byte, id uint32) error {
	return connError(FrameSizeError, "a frame of type %d on stream %d is larger than %d bytes", kind, id, MaxFrame)
}

// fill writes the answers to the input so far, and reads more.
func (c *Conn) fill() error {
	c.Flush()
	c.mu.Lock()
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if c.r == c.w {
		c.r, c.w = 0, 0
		if c.quiet > 16 && len(c.buf) > smallBuffer {
			c.buf, c.quiet = make([]byte, smallBuffer), 0
		}
	} else if c.r > 0 {
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	if c.w == len(c.buf) {
		c.buf = append(make([]byte, 0, largeBuffer), c.buf...)[:largeBuffer]
	}
	// The rest of something that has begun must arrive in time. What has begun may be another frame
	// at each look: a client that sends without a pause rarely ends a write where a read ends.
	if partial := c.w > 0 || c.blockID != 0 || !c.settled; partial != c.slow || partial && c.framed {
		c.slow, c.framed = partial, false
		var by time.Time
		if partial {
			by = time.Now().Add(c.frameTime())
		}
		c.nc.SetReadDeadline(by)
	}
	n, err := c.nc.Read(c.buf[c.w:])
	c.w += n
	if c.w == len(c.buf) && len(c.buf) < largeBuffer {
		c.buf = append(make([]byte, 0, largeBuffer), c.buf...)[:largeBuffer]
	}
	if n < smallBuffer/2 {
		c.quiet++
	} else {
		c.quiet = 0
	}
	if n > 0 {
		c.lastRead.Store(mono.Now())
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return connError(EnhanceYourCalm, "a frame or header was not complete within %v", c.frameTime())
	}
	return err
}

func (c *Conn) frameTime() time.Duration { return cmp.Or(c.config.FrameTime, c.config.Stall) }

// sweepLocked looks after Stall for bodies that have made no progress since the last look, and for
// answers that are not taken, as long as there are streams.
func (c *Conn) sweepLocked() {
	if c.sweeper == nil {
		c.sweeper = time.AfterFunc(c.config.Stall, c.sweep)
	} else if !c.sweeping {
		c.sweeper.Reset(c.config.Stall)
	}
	c.sweeping = true
}

func (c *Conn) sweep() {
	c.mu.Lock()
	late := make(map[*Stream]Receiver)
	var unread []*Stream
	now := mono.Now()
	c.round++
	for _, st := range c.streams {
		switch {
		case st.unreadLocked(now):
			unread = append(unread, st)
		case !st.halfClosed && st.receiver != nil && c.round-st.round >= 2:
			late[st] = st.receiver
		}
	}
	c.sweeping = false
	if len(c.streams) > 0 && !c.ended {
		c.sweepLocked()
	}
	c.mu.Unlock()
	for st, r := range late {
		if r.Incomplete() {
			c.cut(st, streamError(Cancel, "the body did not arrive in time"))
		}
	}
	for _, st := range unread {
		c.cut(st, streamError(Cancel, "the client does not take the answer"))
	}
	c.Flush()
}

// sayGoodbye tells the client what it did wrong.
func (c *Conn) sayGoodbye(fault *ConnError) {
	c.mu.Lock()
	if c.err == nil {
		c.goAwayLocked(c.lastID, fault.Code, fault.Text)
	}
	if !c.writing {
		c.deadline = mono.Now().Add(c.config.Stall) // so that Flush sets none
	}
	c.nc.SetWriteDeadline(time.Now().Add(time.Second))
	for len(c.out) > 0 && c.err == nil {
		c.awaitRoomLocked() // another goroutine may be writing
	}
	c.mu.Unlock()
	c.linger()
}

// linger lets the client read the last frames, although it may still be sending.
func (c *Conn) linger() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok {
		return
	}
	half.CloseWrite()
	c.nc.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	var sink [16 << 10]byte
	for range 64 {
		if _, err := c.nc.Read(sink[:]); err != nil {
			return
		}
	}
}

// rateLimit bounds the frames that cost work and carry no request.
type rateLimit struct {
	rate, burst float64 // frames a second, and at once
	level       float64
	last        mono.Time
}

// newControls bounds control frames, and newResets the requests that are cancelled: their work is
// wasted.
func newControls() rateLimit { return rateLimit{rate: 2_000, burst: 10_000, last: mono.Now()} }
func newResets() rateLimit   { return rateLimit{rate: 5_000, burst: 20_000, last: mono.Now()} }

// allow counts a frame, and reports whether the client keeps to the limit.
func (l *rateLimit) allow() bool {
	if l.level++; l.level < l.burst {
		return true
	}
	now := mono.Now()
	l.level = max(0, l.level-now.Sub(l.last).Seconds()*l.rate)
	l.last = now
	return l.level < l.burst
}
