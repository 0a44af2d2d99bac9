package grpcclient

import "net"

// TryWrite takes frames of the client, and writes what the socket accepts at once.
func (c *direct) TryWrite(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fullLocked() {
		c.flushLocked(false)
		if c.fullLocked() {
			return 0, nil
		}
	}
	return c.takeLocked(p, false)
}

// Write takes frames of the client.
func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.fullLocked() {
		if !c.writing && len(c.out) > 0 {
			c.flushLocked(true)
			continue
		}
		c.room.Wait()
	}
	return c.takeLocked(p, true)
}

// fullLocked reports whether the client must wait before it sends more.
func (c *Conn) fullLocked() bool {
	return (len(c.out) > maxOut || c.pending > maxPending) && c.err == nil
}

func (c *Conn) takeLocked(p []byte, block bool) (int, error) {
	if c.err != nil {
		return 0, net.ErrClosed
	}
	if err := c.translateLocked(p); err != nil {
		c.endLocked(err)
		return 0, err
	}
	c.wakeLocked()
	c.flushLocked(block)
	return len(p), nil
}

// flushLocked writes what waits for the server, unless another goroutine does. Without block,
// another goroutine writes what cannot be written at once.
func (c *Conn) flushLocked(block bool) {
	if c.writing || len(c.out) == 0 {
		return
	}
	c.writing = true
	if !block && c.socket == nil {
		go c.writeRest()
		return
	}
	for len(c.out) > 0 && c.err == nil {
		b := c.takeOutLocked()
		c.mu.Unlock()
		var n int
		var err error
		if block {
			n, err = c.nc.Write(b)
		} else {
			n, err = c.socket.TryWrite(b)
		}
		c.mu.Lock()
		if err != nil {
			c.endLocked(err)
		} else if n < len(b) {
			c.rest = b[n:]
			go c.writeRest()
			return
		}
		c.keepLocked(b)
	}
	c.writing = false
	c.room.Broadcast()
}

func (c *Conn) takeOutLocked() []byte {
	b := c.out
	c.out, c.spare = c.spare[:0], nil
	return b
}

func (c *Conn) keepLocked(b []byte) {
	if cap(b) <= largeBuffer {
		c.spare = b
	}
}

// writeRest writes all that waits for the server.
func (c *Conn) writeRest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && (len(c.rest) > 0 || len(c.out) > 0) {
		b := c.rest
		if c.rest = nil; len(b) == 0 {
			b = c.takeOutLocked()
		}
		c.mu.Unlock()
		_, err := c.nc.Write(b)
		c.mu.Lock()
		if err != nil {
			c.endLocked(err)
		}
		c.keepLocked(b)
		c.room.Broadcast()
	}
	c.writing = false
	c.room.Broadcast()
}
