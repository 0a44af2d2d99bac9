package kubernetes

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// connections holds the connections of one Registry. client-go shares connections between clients
// with the same configuration and keeps them for minutes; with a dialer of its own, a Registry
// shares with no other and can close them.
type connections struct {
	dial dialFunc

	mu     sync.Mutex // guards the fields below
	open   map[*connection]bool
	closed bool
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// newConnections returns connections made by dial, or by a dialer like client-go's own if it is
// nil.
func newConnections(dial dialFunc) *connections {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return &connections{dial: dial, open: make(map[*connection]bool)}
}

func (c *connections) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Close()
		return nil, registry.ErrClosed
	}
	own := &connection{conn, c}
	c.open[own] = true
	return own, nil
}

// close closes all connections, and those being dialled as soon as they are established.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for conn := range c.open {
		conn.Conn.Close()
	}
	clear(c.open)
}

// connection is a net.Conn of a connections.
type connection struct {
	net.Conn
	of *connections
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
