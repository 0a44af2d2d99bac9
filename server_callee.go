package anser

import (
	"context"
	"crypto/tls"

	"github.com/anser-rpc/anser/internal/idtable"
	"github.com/anser-rpc/anser/wire"
)

// calleeHalf is the half of a connection that takes calls: on a server, or on a client that its
// server calls. It answers through the writer of the connection. On a client's connection it runs
// no handler on the reader goroutine, which must not block, and takes no streams.
type calleeHalf struct {
	*conn
	server   *Server
	accepted *serverConn // whose half it is; nil on a client's connection
	idBit    uint64      // of the ids of its calls: fromServer on a client's connection, else 0
	tls      *tls.ConnectionState
	auth     *connAuth // nil: the peer proves no identity

	// Guarded by mu.
	running   idtable.Table[*callContext] // calls that do not run on the reader goroutine
	opened    uint64                      // number of calls ever added to running
	detached  int                         // number of calls in running, and of cancelled ones whose handler has not returned
	streaming int                         // streams whose handlers have not returned
}

func (c *calleeHalf) peerInfo() Peer {
	if c.accepted != nil && c.accepted.protocol != nil {
		p := c.accepted.protocol.remote
		p.Identity = c.identity()
		return p
	}
	return Peer{Addr: c.nc.RemoteAddr(), Local: c.nc.LocalAddr(), TLS: c.tls, Identity: c.identity(), Checksums: c.checksums != nil}
}

// takeID accepts the id of a REQUEST, which must be an id of the peer and larger than the last
// one.
func (c *calleeHalf) takeID(s *reading, id uint64) error {
	if id <= s.lastID || id&fromServer != c.idBit {
		return wire.Errorf(wire.BadID, "REQUEST with id %d after %d: ids must grow", id&^c.idBit, s.lastID&^c.idBit)
	}
	s.lastID = id
	return nil
}

// finishDrain closes a server's connection that its client no longer uses and on which no call is
// open. It is called whenever the last call may have ended.
func (c *calleeHalf) finishDrain() {
	if c.accepted != nil {
		c.accepted.finishDrain()
	}
}

// answer sends the answer of a call and removes the call from the table in one step: between two
// steps no call would be open, and a drain would close the connection before the answer is sent.
func (c *calleeHalf) answer(id uint64, frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.waitRoomLocked(context.Background())
	c.detached--
	// A cancelled or lost call is no longer in the table, and its reply is not needed.
	if c.running.Take(id) == nil || err != nil || len(frame) == 0 {
		return
	}
	if len(frame) > loadBuffer && !c.writing {
		c.writeOwnedLocked(frame) // a copy would make the buffers of the connection as large
		return
	}
	c.appendLocked(frame)
	if !c.writing {
		c.flushLocked(true)
	}
}
