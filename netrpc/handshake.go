package netrpc

import (
	"context"
	"crypto/tls"
	"fmt"
)

// handshake performs the steps before the first request.
func (c *session) handshake() error {
	timeout := or(c.server.HandshakeTimeout, defaultHandshake)
	if c.link != nil {
		if conn, ok := c.link.Transport().(*tls.Conn); ok && c.peer.TLS == nil {
			ctx, cancel := context.WithTimeout(c.ctx, timeout)
			defer cancel()
			if err := conn.HandshakeContext(ctx); err != nil {
				return fmt.Errorf("TLS: %w", err)
			}
			state := conn.ConnectionState()
			c.peer.TLS = &state
		}
	}
	if err := c.open(); err != nil {
		return err
	}
	c.introduce(timeout)
	return nil
}
