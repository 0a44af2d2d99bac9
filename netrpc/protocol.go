package netrpc

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/link"
)

// Protocol returns net/rpc's protocol over gob, for [anser.Protocols]: stock net/rpc clients
// call the methods of the server on its own port. Its clients authenticate as in [Server] with
// Server.Anser. They may begin with the CONNECT request of rpc.DialHTTP, to its default path.
func Protocol() anser.Protocol {
	return &protocol{name: "net/rpc", begins: begins, codec: newGobServerCodec}
}

// connect is what a net/rpc client sends in DialHTTP, byte for byte.
const connect = "CONNECT " + DefaultRPCPath + " HTTP/1.0\n\n"

// begins recognizes the beginnings of net/rpc clients.
func begins(begin []byte) (is, may bool) {
	if n := min(len(begin), len(connect)); string(begin[:n]) == connect[:n] {
		return n == len(connect), true
	}
	return beginsGob(begin)
}

// NewProtocol returns a protocol with a codec of its own, for [anser.Protocols]. begins is as for
// anser.Protocol.
func NewProtocol(name string, begins func(begin []byte) (is, may bool), codec func(io.ReadWriteCloser) ServerCodec) anser.Protocol {
	return &protocol{name: name, begins: begins, other: codec}
}

// protocol serves connections of several servers of package anser.
type protocol struct {
	name   string
	begins func(begin []byte) (is, may bool)
	codec  func(*link.Conn) ServerCodec
	other  func(io.ReadWriteCloser) ServerCodec // in place of codec

	mu      sync.Mutex // guards servers
	servers map[*anser.Server]*Server
}

func (p *protocol) Name() string { return p.name }

func (p *protocol) NextProtos() []string { return nil }

// CheckServer returns what the protocol lacks; see [anser.ProtocolChecker].
func (p *protocol) CheckServer(*anser.Server) error {
	if p.name == "" || p.begins == nil || p.codec == nil && p.other == nil {
		return errors.New("netrpc.NewProtocol: a protocol needs a name and both functions")
	}
	return nil
}

func (p *protocol) Begins(begin []byte) (is, may bool) { return p.begins(begin) }

func (p *protocol) Serve(s *anser.Server, in anser.Incoming) error {
	p.mu.Lock()
	at := p.servers[s]
	if at == nil {
		if p.servers == nil {
			p.servers = make(map[*anser.Server]*Server)
		}
		at = &Server{Anser: s}
		p.servers[s] = at
	}
	p.mu.Unlock()
	conn := &peerConn{Conn: in.Conn, peer: in.Peer}
	if p.other == nil {
		if rest, ok := bytes.CutPrefix(in.Begin, []byte(connect)); ok {
			conn.SetWriteDeadline(time.Now().Add(defaultHandshake))
			if _, err := io.WriteString(conn, "HTTP/1.0 "+connected+"\n\n"); err != nil {
				conn.Close()
				return err
			}
			conn.SetWriteDeadline(time.Time{})
			in.Begin = rest
		}
		at.serveLink(link.New(conn, in.Begin), p.codec, origin{})
		return nil
	}
	conn.begin = in.Begin
	codec := p.other(conn)
	if codec == nil {
		return errNoCodec
	}
	at.serveCodec(codec, origin{})
	return nil
}

// peerConn is a connection whose TLS state is known, and whose first bytes were read already.
type peerConn struct {
	net.Conn
	peer  anser.Peer
	begin []byte
}

func (c *peerConn) Read(p []byte) (int, error) {
	if len(c.begin) > 0 {
		n := copy(p, c.begin)
		c.begin = c.begin[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite closes the direction to the client.
func (c *peerConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// beginsGob recognizes the definition of the type Request, with which a net/rpc client begins:
// its length, the negative id of the type, and its name.
func beginsGob(begin []byte) (is, may bool) {
	const name = "\x07Request"
	if begin[0] < 0x10 || begin[0] >= 0x80 {
		return false, false
	}
	if len(begin) > 1 && begin[1] != 0x7F && begin[1] < 0xF8 { // -64 in one byte, or less
		return false, false
	}
	return bytes.Contains(begin[:min(len(begin), 16)], []byte(name)), len(begin) < 16
}
