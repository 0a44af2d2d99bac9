package jsonrpc

import "errors"

var errNoRoom = errors.New("jsonrpc: the server has no memory for the result besides the others of the batch (anser.MaxMemory): ask for less at once")

// uncounted is the size up to which responses are not counted.
const uncounted = 4 << 10

// KeepWith sets how the responses of batches are counted; see [link.Keeper]. A batch is small, and
// its responses, which are sent together, may not be.
func (c *serverCodec) KeepWith(hold func(n int) bool, release func(n int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold, c.release = hold, release
}

// keep counts a response of n bytes until its batch has been sent. It reports false if there is no
// room for it.
func (c *serverCodec) keep(of *batch, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n <= uncounted || c.hold == nil || c.closed {
		return true
	}
	if !c.hold(n) {
		return false
	}
	of.held += n
	c.held += n
	return true
}

// drop releases the responses of a batch.
func (c *serverCodec) drop(of *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of.held > 0 && !c.closed {
		c.release(of.held)
		c.held -= of.held
	}
}

// Close closes the connection, and releases the responses of batches that are not complete: some of
// their calls may not have run.
func (c *serverCodec) Close() error {
	c.mu.Lock()
	if c.held > 0 && !c.closed {
		c.release(c.held)
	}
	c.closed = true
	c.mu.Unlock()
	return c.stream.Close()
}
