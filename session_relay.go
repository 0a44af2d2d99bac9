package anser

import (
	"context"
	"net"

	"github.com/anser-rpc/anser/wire"
)

// relay gives the frames of a server's calls to the connection that they go over.
type relay struct {
	net.Conn // for its addresses
	to       *serverConn
	part     []byte // of a frame
}

// Close leaves the connection alone.
func (r *relay) Close() error { return nil }

// Write passes on what are whole frames by now, with the ids of a server. It waits while the client does
// not take what was sent before.
func (r *relay) Write(p []byte) (int, error) {
	r.part = append(r.part, p...)
	whole := 0
	for len(r.part)-whole >= wire.HeaderSize {
		frame := r.part[whole:]
		end := wire.HeaderSize + int(getUint32(frame))
		if len(frame) < end {
			break
		}
		if id := getUint64(frame[idOffset:]); id != 0 {
			putUint64(frame[idOffset:], id|fromServer)
		}
		whole += end
	}
	if err := r.to.pass(r.part[:whole]); err != nil {
		return 0, err
	}
	r.part = r.part[:copy(r.part, r.part[whole:])]
	if len(r.part) == 0 && cap(r.part) > maxKeptOut {
		r.part = nil
	}
	return len(p), nil
}

// pass sends frames that were made elsewhere.
func (c *serverConn) pass(frames []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.waitRoomLocked(context.Background()); err != nil {
		return err
	}
	if c.closing {
		return errConnClosed
	}
	c.appendLocked(frames)
	if !c.writing {
		c.flushLocked(true)
	}
	return nil
}

// drainPeer asks the client to make another connection.
func (r *relay) drainPeer() { r.to.startDrain(r.to.server.o.grace) }

// inUse reports whether calls of a server to its client are open.
func (c *clientConn) inUse() bool { return c.busy.Load() > 0 }

// answered takes the client's answer to a call of its server. It runs on the goroutine that reads the
// server's connection.
func (c *clientConn) answered(h wire.Header, body []byte) error {
	c.progress.lastRead.Store(nanotime())
	c.role.batch[0] = arrived{id: h.ID &^ fromServer, kind: h.Type, flags: h.Flags, body: body}
	c.role.n = 1
	_, err := c.deliver(false) // more may have been read
	return err
}

// reverse returns the connection for calls to the client, or nil.
func (c *serverConn) reverse() *clientConn {
	if back := c.back.Load(); back != nil {
		return (*back).(*clientConn)
	}
	return nil
}
