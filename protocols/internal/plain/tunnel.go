package plain

import (
	"bufio"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/anser-rpc/anser/protocols/internal/h2"
)

// wantsSocket reports whether a request opens a WebSocket: by an HTTP/1.1 upgrade (RFC 6455) or
// by an extended CONNECT of HTTP/2 (RFC 8441).
func wantsSocket(r *http.Request) bool {
	if r.Method == http.MethodConnect {
		return r.Header[h2.ProtocolHeader] != nil
	}
	return r.Method == http.MethodGet && r.ProtoMajor == 1 && hasToken(r.Header.Values("Upgrade"), "websocket")
}

func hasToken(values []string, token string) bool {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

// accept answers the handshake. The connection below it has only the bytes of the socket.
func (q *request) accept(protocols []string) (*websocket.Conn, net.Conn, error) {
	t := &tunnel{ResponseWriter: q.w, q: q}
	r := q.r
	if r.Method == http.MethodConnect {
		if r.Header[h2.ProtocolHeader][0] != "websocket" {
			http.Error(q.w, "501 the protocol of CONNECT is not served: use websocket", http.StatusNotImplemented)
			return nil, nil, errors.New("another protocol")
		}
		// The same handshake as in HTTP/1.1, but for the fields that HTTP/2 has no use for.
		r = r.Clone(r.Context())
		r.Method = http.MethodGet
		for name, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": base64.StdEncoding.EncodeToString(make([]byte, 16)),
		} {
			r.Header.Set(name, value)
		}
		t.stream, t.header = true, make(http.Header)
	}
	ws, err := websocket.Accept(t, r, &websocket.AcceptOptions{
		Subprotocols:       protocols,
		InsecureSkipVerify: true, // the origin was checked as that of every request
		CompressionMode:    websocket.CompressionDisabled,
		OnPingReceived:     pings(),
	})
	return ws, t.nc, err
}

// tunnel is the ResponseWriter of a handshake. It remembers the connection that is taken over, and
// makes one of an HTTP/2 stream.
type tunnel struct {
	http.ResponseWriter
	q      *request
	stream bool        // of HTTP/2
	header http.Header // of stream
	nc     net.Conn
}

func (t *tunnel) Header() http.Header {
	if t.stream {
		return t.header
	}
	return t.ResponseWriter.Header()
}

func (t *tunnel) WriteHeader(status int) {
	if t.stream && status == http.StatusSwitchingProtocols {
		status = http.StatusOK
		for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Accept"} {
			delete(t.header, name)
		}
	}
	for name, values := range t.header {
		t.ResponseWriter.Header()[name] = values
	}
	t.ResponseWriter.WriteHeader(status)
}

// Hijack implements http.Hijacker.
func (t *tunnel) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !t.stream {
		nc, rw, err := t.q.control.Hijack()
		t.nc = nc
		return nc, rw, err
	}
	if err := t.q.control.Flush(); err != nil {
		return nil, nil, err
	}
	t.nc = &streamConn{q: t.q}
	return t.nc, bufio.NewReadWriter(bufio.NewReader(t.nc), bufio.NewWriter(t.nc)), nil
}

// streamConn is an HTTP/2 stream as a connection.
type streamConn struct {
	net.Conn // nil: the addresses are not used
	q        *request

	mu     sync.Mutex // guards closed
	closed bool
}

func (c *streamConn) Read(p []byte) (int, error) { return c.q.r.Body.Read(p) }

func (c *streamConn) Write(p []byte) (int, error) {
	n, err := c.q.w.Write(p)
	if err != nil {
		return n, err
	}
	return n, c.q.control.Flush()
}

// Close makes Read and Write return. The stream ends with the handler.
func (c *streamConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	past := time.Unix(1, 0)
	c.q.control.SetReadDeadline(past)
	return c.q.control.SetWriteDeadline(past)
}

// SetReadDeadline bounds the time of Read.
func (c *streamConn) SetReadDeadline(by time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	return c.q.control.SetReadDeadline(by)
}
