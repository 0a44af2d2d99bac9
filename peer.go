package anser

import (
	"context"
	"crypto/tls"
	"net"
)

// Peer is the other side of the connection that a call came over.
type Peer struct {
	Addr  net.Addr
	Local net.Addr
	// TLS is the state of the connection after its handshake, or nil without TLS. It is shared:
	// do not change it.
	TLS *tls.ConnectionState
	// Identity is who a client is, on a server with [Authenticate], else nil. It is shared: do not change it.
	Identity *Identity
	// Checksums says that every frame of the connection has one: see [Checksums].
	Checksums bool
}

// PeerFrom returns the caller of the handler that ctx belongs to.
func PeerFrom(ctx context.Context) (Peer, bool) {
	c := callFrom(ctx)
	if c == nil {
		return Peer{}, false
	}
	return c.conn.peer(), true
}

// AttemptFrom returns the number of the attempt that ctx's handler serves: 0 for the first.
func AttemptFrom(ctx context.Context) int {
	if c := callFrom(ctx); c != nil {
		return int(c.attempt)
	}
	return 0
}
