package websocket

import (
	"context"
	"crypto/tls"
	"errors"
	"io"

	"github.com/coder/websocket"

	"github.com/anser-rpc/anser/internal/asyncconn"
	"github.com/anser-rpc/anser/wire"
)

// messages converts between messages and a byte stream. A deadline of websocket.Conn ends the
// whole connection; package asyncconn implements other ones.
type messages struct {
	ws    *websocket.Conn
	r     io.Reader // of the current message, or nil
	empty bool      // no byte of it has been read
}

var errText = errors.New("a message that is not binary")

// Read implements asyncconn.Below. An empty message is the end of the peer's direction.
func (m *messages) Read(b []byte) (int, error) {
	for {
		if m.r == nil {
			kind, r, err := m.ws.Reader(context.Background())
			if err != nil {
				return 0, endOf(err)
			}
			if kind != websocket.MessageBinary {
				m.ws.Close(websocket.StatusUnsupportedData, "messages must be binary")
				return 0, errText
			}
			m.r, m.empty = r, true
		}
		n, err := m.r.Read(b)
		if n > 0 {
			m.empty = false
		}
		if err == io.EOF {
			m.r, err = nil, nil
			if m.empty {
				err = io.EOF
			}
		}
		if n > 0 || err != nil {
			return n, endOf(err)
		}
	}
}

// endOf returns io.EOF for the regular end of a connection, and an error that the server counts
// for an oversized message.
func endOf(err error) error {
	if errors.Is(err, websocket.ErrMessageTooBig) {
		return wire.Errorf(wire.FrameTooLarge, "a message of WebSocket is over the limit of %d bytes", MaxMessage)
	}
	if s := websocket.CloseStatus(err); s == websocket.StatusNormalClosure || s == websocket.StatusGoingAway {
		return io.EOF
	}
	return err
}

// Write implements asyncconn.Below.
func (m *messages) Write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), MaxMessage)
		if err := m.ws.Write(context.Background(), websocket.MessageBinary, b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// CloseWrite implements asyncconn.Below.
func (m *messages) CloseWrite() error {
	return m.ws.Write(context.Background(), websocket.MessageBinary, nil)
}

// Close implements asyncconn.Below.
func (m *messages) Close(bool) { m.ws.CloseNow() }

// tlsConn is a connection over TLS, which exposes the TLS state to the server.
type tlsConn struct {
	*asyncconn.Conn
	state *tls.ConnectionState
}

// ConnectionState returns the TLS state of the underlying connection.
func (c *tlsConn) ConnectionState() tls.ConnectionState { return *c.state }
