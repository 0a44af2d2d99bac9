// Package rpcx serves clients of rpcx: the version 1 of its protocol. conn.go reads the requests of a
// connection, call.go runs them.
package rpcx

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/link"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/host"
	"github.com/anser-rpc/anser/protocols/internal/rpcxwire"
	"github.com/anser-rpc/anser/wire"
)

const (
	stall        = 10 * time.Second
	smallBuffer  = 2 << 10
	keepBuffer   = 64 << 10
	uncounted    = 4 << 10   // bytes of a request that do not count for the memory of the server
	maxHeartbeat = 1 << 10   // bytes of the payload of a heartbeat
	maxSkipped   = 256 << 20 // bytes of a message that is refused and read all the same
)

// conn is a connection with a client.
type conn struct {
	link    *link.Conn
	host    *host.Conn
	methods *exchange.Directory
	most    int // bytes of a payload

	// Owned by the goroutine that reads.
	buf  []byte // the message that is being read, after its head
	r, w int    // buf[r:w] has arrived and is not handled yet
	held int    // bytes of buf that the server's memory counts

	mu       sync.Mutex // guards the fields below
	idle     sync.Cond  // signalled when open becomes 0
	open     int        // calls that are not answered
	draining bool
	over     bool // the reader has ended
}

// Serve serves a connection until it ends.
func Serve(s *anser.Server, methods *exchange.Directory, in anser.Incoming) (err error) {
	c := &conn{link: link.New(in.Conn, in.Begin), methods: methods, most: s.MaxMessageSize(), buf: make([]byte, smallBuffer)}
	c.link.SetLimits(link.Limits{Stall: stall})
	c.idle.L = &c.mu
	c.host, err = host.Open(s, in.Peer, c.drain, c.end)
	if err != nil {
		return err
	}
	defer func() { // also if it panics
		c.mu.Lock()
		c.over = true
		c.mu.Unlock()
		c.hold(0)
		c.link.Close()
		c.host.End(err)
	}()
	err = c.serve()
	if errors.Is(err, errLeaves) {
		c.leave()
		return nil
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// errLeaves is the error of a request that is left to another server.
var errLeaves = errors.New("the connection drains")

// drain is called when the client should use another server. The protocol cannot say so.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
}

// end ends the connection: at once, or with nil after a drain, when the answers have left.
func (c *conn) end(why error) {
	if why != nil {
		c.link.Close()
		return
	}
	go c.finish()
}

// finish waits for the open calls, and closes the direction to the client, which then takes the
// connection for closed.
func (c *conn) finish() {
	c.mu.Lock()
	for c.open > 0 && !c.over {
		c.idle.Wait()
	}
	over := c.over
	c.mu.Unlock()
	if !over {
		c.link.Out.FlushAll()
		c.link.Linger()
	}
}

// leave ends a connection whose client has made a call during a drain. The call is not answered: the
// end of the connection tells the client that it did not run here, and it calls another server.
func (c *conn) leave() {
	c.finish()
	var sink [4 << 10]byte
	for { // bytes that are not read would destroy the last answers
		if _, err := c.link.Read(sink[:]); err != nil {
			return
		}
	}
}

// serve reads messages until reading fails.
func (c *conn) serve() error {
	for {
		h, err := c.head()
		if err != nil {
			return err
		}
		if err := c.message(&h); err != nil {
			return err
		}
		c.rest()
	}
}

// head reads the head of a message.
func (c *conn) head() (rpcxwire.Head, error) {
	if err := c.need(rpcxwire.HeadSize); err != nil {
		if err == io.EOF && c.w > c.r {
			err = io.ErrUnexpectedEOF
		}
		return rpcxwire.Head{}, err
	}
	h, err := rpcxwire.ParseHead(c.buf[c.r:c.w])
	if err != nil {
		return h, broken(err)
	}
	c.r += rpcxwire.HeadSize
	return h, nil
}

// message reads the rest of a message, and runs its call.
func (c *conn) message(h *rpcxwire.Head) error {
	var f rpcxwire.Front
	for need := 1; ; {
		if err := c.need(need); err != nil {
			return cut(err)
		}
		var err error
		f, need, err = rpcxwire.ParseFront(h, c.buf[c.r:min(c.w, c.r+int(h.Size))])
		if err != nil {
			return broken(err)
		}
		if need == 0 {
			break
		}
	}
	switch {
	case h.Has(rpcxwire.Response):
		return c.skip(int64(h.Size)) // an answer to nothing: this side asks nothing
	case h.Has(rpcxwire.Heartbeat):
		return c.heartbeat(h)
	}
	q, fault := c.begin(h, &f)
	if fault == nil && f.Payload > c.most {
		fault = anser.Refuse(anser.ResourceExhausted, "the request of %d bytes is over the limit of %d (anser.MaxMessage)", f.Payload, c.most)
		if k, e := q.conn.Admit(&q.call); e == nil {
			k.Refuse(fault) // for the counters
		} else {
			fault = e
		}
	}
	if fault != nil {
		q.refuse(fault)
		return c.skip(int64(h.Size))
	}
	if err := c.need(int(h.Size)); err != nil {
		return cut(err)
	}
	payload := c.buf[c.r+f.Size : c.r+int(h.Size)]
	c.r += int(h.Size)
	c.hold(0) // Admit counts it again
	return q.run(payload)
}

// heartbeat answers a heartbeat with itself.
func (c *conn) heartbeat(h *rpcxwire.Head) error {
	if h.Size > rpcxwire.MaxFront+maxHeartbeat {
		return broken(fmt.Errorf("a heartbeat of %d bytes", h.Size))
	}
	if err := c.need(int(h.Size)); err != nil {
		return cut(err)
	}
	body := c.buf[c.r : c.r+int(h.Size)]
	c.r += int(h.Size)
	return c.write(func(b []byte) []byte {
		answer := *h
		answer.Flags |= rpcxwire.Response
		return rpcxwire.AppendBody(b, answer, body)
	})
}

// need reads until n bytes are in the buffer after r. The buffer grows only as they arrive.
func (c *conn) need(n int) error {
	for c.w-c.r < n {
		if c.r > 0 && (c.r == c.w || c.r+n > len(c.buf)) {
			c.w = copy(c.buf, c.buf[c.r:c.w])
			c.r = 0
		}
		if c.w == len(c.buf) {
			grown := make([]byte, min(2*len(c.buf), max(n, 2*smallBuffer)))
			copy(grown, c.buf[:c.w])
			c.buf = grown
			if !c.hold(len(grown)) {
				return errNoMemory
			}
		}
		m, err := c.link.Read(c.buf[c.w:])
		c.w += m
		if err != nil && c.w-c.r < n {
			return err
		}
	}
	return nil
}

// errNoMemory ends a connection for whose request the server has no memory: it cannot be skipped
// while its bytes arrive, and its client may try again elsewhere.
var errNoMemory = errors.New("the server has no memory for the request (anser.MaxMemory)")

// hold counts the buffer for the memory of the server.
func (c *conn) hold(size int) bool {
	if size <= uncounted {
		size = 0
	}
	switch more := size - c.held; {
	case more > 0:
		if !c.host.Hold(more) {
			return false
		}
	case more < 0:
		c.host.Release(-more)
	}
	c.held = size
	return true
}

// skip passes over n bytes.
func (c *conn) skip(n int64) error {
	if n > maxSkipped {
		return wire.Errorf(wire.FrameTooLarge, "a message of %d bytes", n)
	}
	for n > 0 {
		if c.r == c.w {
			c.r, c.w = 0, 0
			if err := c.need(1); err != nil {
				return cut(err)
			}
		}
		m := int(min(n, int64(c.w-c.r)))
		c.r += m
		n -= int64(m)
	}
	return nil
}

// rest marks the end of a message.
func (c *conn) rest() {
	c.link.Rest(c.w - c.r)
	if c.r == c.w {
		c.r, c.w = 0, 0
		if len(c.buf) > keepBuffer {
			c.buf = make([]byte, smallBuffer)
		}
	}
	if len(c.buf) <= uncounted || c.r == c.w {
		c.hold(0)
	}
}

// broken returns a fault of the client in the form in which the server counts it.
func broken(err error) error { return wire.Errorf(wire.BadFrame, "%v", err) }

// cut returns the error of a message that has not arrived completely.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
