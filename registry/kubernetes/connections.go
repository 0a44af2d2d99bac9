package kubernetes

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// connections are those of one Registry. client-go shares connections between clients that are configured
// alike and keeps them for minutes; one that dials by itself shares with nobody, and can close them.
type connections struct {
	dial dialFunc

	mu     sync.Mutex // guards what follows
	open   map[*connection]bool
	closed bool
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// newConnections returns connections that dial makes, or a dialer like client-go's own where it is nil.
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

// close closes all connections, and those that are still being made when they are.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for conn := range c.open {
		conn.Conn.Close()
	}
	clear(c.open)
}

// connection is one of them.
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
