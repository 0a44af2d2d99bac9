package anser

import (
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
