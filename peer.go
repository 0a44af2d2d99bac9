package anser

import (
	"crypto/tls"
	"net"
)

// Peer describes the other side of the connection on which a call arrived.
type Peer struct {
	Addr  net.Addr
	Local net.Addr
	// TLS is the state of the connection after its handshake, or nil without TLS. It is shared: do
	// not change it.
	TLS *tls.ConnectionState
	// Identity is the identity of a client on a server with [Authenticate], otherwise nil. It is
	// shared: do not change it.
	Identity *Identity
	// Checksums is true if every frame of the connection has a checksum: see [Checksums].
	Checksums bool

	accepted bool // by a listener of the server, which has counted the connection
}
