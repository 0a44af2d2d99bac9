// Package rpcx serves rpcx clients: the version 1 of its protocol. conn.go reads the requests
// of a connection, call.go runs them.
package rpcx

import (
	"errors"
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
	maxHeartbeat = 1 << 10   // bytes of the payload of a heartbeat
	maxSkipped   = 256 << 20 // bytes of a message that is refused and read all the same
)

// conn is a connection with a client.
type conn struct {
	link    *link.Conn
	host    *host.Conn
	methods *exchange.Directory
	most    int              // bytes of a payload
	in      *rpcxwire.Reader // owned by the goroutine that reads
	opened  chan struct{}    // closed when host is set, or never will be

	mu       sync.Mutex // guards the fields below
	idle     sync.Cond  // signalled when open becomes 0
	open     int        // calls that are not answered
	draining bool
	over     bool // the reader has ended
}

// Serve serves a connection until it ends.
func Serve(s *anser.Server, methods *exchange.Directory, in anser.Incoming) (err error) {
	c := &conn{link: link.New(in.Conn, in.Begin), methods: methods, most: s.MaxMessageSize()}
	c.in = rpcxwire.NewReader(c.link, c.hold)
	c.link.SetLimits(link.Limits{Stall: stall})
	c.idle.L = &c.mu
	c.opened = make(chan struct{})
	c.host, err = host.Open(s, "rpcx", in.Peer, c.drain, c.end)
	close(c.opened)
	if err != nil {
		return err
	}
	defer func() { // also if it panics
		c.mu.Lock()
		c.over = true
		c.mu.Unlock()
		c.in.Close()
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

// drain is called when the client should use another server. The protocol cannot say so, and calls
// are refused at once.
func (c *conn) drain() {
	c.mu.Lock()
	c.draining = true
	c.mu.Unlock()
	go func() {
		if <-c.opened; c.host != nil {
			c.host.Drained()
		}
	}()
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

// leave ends a connection whose client has made a call during a drain. The call is not answered:
// the end of the connection tells the client that it did not run here, and it calls another
// server.
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
		h, f, err := c.in.Next()
		if err == nil {
			err = c.message(&h, &f)
		}
		if fault, ok := errors.AsType[*rpcxwire.BrokenError](err); ok {
			return wire.Errorf(wire.BadFrame, "%v", fault)
		}
		if err != nil {
			return err
		}
	}
}

// message reads the rest of a message, and runs its call.
func (c *conn) message(h *rpcxwire.Head, f *rpcxwire.Front) error {
	switch {
	case h.Has(rpcxwire.Response):
		return c.skip(f) // an answer to nothing: this side asks nothing
	case h.Has(rpcxwire.Heartbeat):
		return c.heartbeat(h, f)
	}
	q, fault := c.begin(h, f)
	if fault != nil {
		q.refuse(fault)
		return c.skip(f)
	}
	body, err := c.in.Body(f)
	if err != nil {
		return err
	}
	defer c.in.Done()
	return q.run(body[f.Size:])
}

// heartbeat answers a heartbeat with itself.
func (c *conn) heartbeat(h *rpcxwire.Head, f *rpcxwire.Front) error {
	if f.Payload > maxHeartbeat {
		return wire.Errorf(wire.FrameTooLarge, "a heartbeat with %d bytes", f.Payload)
	}
	body, err := c.in.Body(f)
	if err != nil {
		return err
	}
	defer c.in.Done()
	answer := *h
	answer.Flags |= rpcxwire.Response
	return c.write(nil, func(b []byte) []byte { return rpcxwire.AppendBody(b, answer, body) })
}

// skip passes over the rest of a message.
func (c *conn) skip(f *rpcxwire.Front) error {
	if f.Payload > maxSkipped {
		return wire.Errorf(wire.FrameTooLarge, "a message with %d bytes", f.Payload)
	}
	return c.in.Skip(f)
}

// hold counts what waits for the rest of a request.
func (c *conn) hold(n int) bool {
	if n < 0 {
		c.host.Release(-n)
		return true
	}
	return c.host.Hold(n)
}
