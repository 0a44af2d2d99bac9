// Package webclient lets an Anser client call servers of Connect and of gRPC-Web. The connection
// that Dial returns takes and returns Anser's frames; a goroutine per call makes a request of
// net/http of them, over HTTP/1.1 or HTTP/2.
//
// frames.go takes the client's frames, call.go carries a call, and connect.go and web.go are the
// two protocols.
package webclient

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/anser-rpc/anser/wire"
)

const (
	maxCalls   = 10_000
	maxHeader  = 80 << 10  // bytes of the header of an answer
	sendWindow = 256 << 10 // bytes of a stream that the client may send before they have left
	connWindow = 1 << 20   // the same for all streams of the connection
	readBuffer = 64 << 10
)

// Options say how servers are called.
type Options struct {
	// Web calls gRPC-Web servers; without it they are Connect servers.
	Web bool
	// HTTP2 speaks HTTP/2 without TLS. With TLS, the server chooses the version of HTTP.
	HTTP2 bool
	// Get has the paths of the methods that are called with GET over Connect.
	Get map[string]bool
}

// conn is the connection as the client sees it.
type conn struct {
	net.Conn // the client's end of a pipe
	local    net.Addr
	remote   net.Addr
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// translator is the other end of the pipe.
type translator struct {
	Options
	pipe   net.Conn
	sender http.RoundTripper
	socks  *sockets
	base   *url.URL // such as "https://host:443"
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup // calls and the goroutine that writes

	// Owned by the goroutine that reads.
	client  wire.Settings // written once, before the first call
	shaken  bool
	methods []string // paths by their number

	mu       sync.Mutex // guards the fields below, and those of calls
	change   sync.Cond  // signalled when up, credit or calls change
	token    string     // value of the header authorization
	up       []byte     // frames for the client
	err      error      // why the connection has ended
	calls    map[uint64]*call
	upCredit int64 // bytes of DATA that the client accepts
	sent     int64 // bytes of DATA that have left, and were not returned to the client yet
	leaving  bool  // the client was told to open no more calls here
	left     bool  // the client has agreed
}

// Dial connects to a server. config is nil for a server without TLS. ctx bounds the connecting
// only.
func Dial(ctx context.Context, address string, config *tls.Config, o Options) (net.Conn, error) {
	socks := &sockets{open: make(map[net.Conn]bool)}
	t := &translator{Options: o, socks: socks, base: &url.URL{Scheme: "http", Host: address}, calls: make(map[uint64]*call)}
	protocols := new(http.Protocols)
	if config != nil {
		t.base.Scheme = "https"
		config = config.Clone()
		config.NextProtos = []string{"h2", "http/1.1"}
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(true)
	} else {
		protocols.SetHTTP1(!o.HTTP2)
		protocols.SetUnencryptedHTTP2(o.HTTP2)
	}
	socks.config = config
	first, err := socks.dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	socks.first = first
	t.sender = &http.Transport{
		DialContext: socks.next, DialTLSContext: socks.next, Protocols: protocols, DisableCompression: true,
		MaxResponseHeaderBytes: maxHeader, IdleConnTimeout: 90 * time.Second,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	t.change.L = &t.mu
	t.ctx, t.cancel = context.WithCancel(context.Background())
	near, far := net.Pipe()
	t.pipe = far
	t.work.Go(t.write)
	go t.run()
	return &conn{near, first.LocalAddr(), first.RemoteAddr()}, nil
}

// run reads the client's frames until the connection ends, and then waits for the calls to end.
func (t *translator) run() {
	err := t.read(bufio.NewReaderSize(t.pipe, readBuffer))
	t.mu.Lock()
	t.endLocked(err)
	t.mu.Unlock()
	t.cancel()
	t.socks.close()
	t.work.Wait()
	t.pipe.Close()
}

// endLocked notes the end of the connection; frames that wait for the client are still written.
func (t *translator) endLocked(err error) {
	if t.err == nil {
		t.err = err
	}
	t.change.Broadcast()
}

// write writes frames to the client.
func (t *translator) write() {
	var spare []byte
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		for len(t.up) == 0 && t.err == nil {
			t.change.Wait()
		}
		if len(t.up) == 0 {
			break
		}
		b := t.up
		t.up = spare[:0]
		t.mu.Unlock()
		_, err := t.pipe.Write(b)
		t.mu.Lock()
		if spare = b; cap(spare) > readBuffer {
			spare = nil
		}
		if err != nil {
			t.endLocked(err)
			break
		}
	}
	t.pipe.Close() // ends read
}

// leaveLocked tells the client to make its further calls over another connection, because the
// server of this one may be gone.
func (t *translator) leaveLocked() {
	if !t.leaving {
		t.leaving = true
		t.up = wire.AppendDrain(t.up, 0, 30_000)
		t.change.Broadcast()
	}
}

// endedLocked ends the connection when the client has agreed to leave and its last call has ended.
func (t *translator) endedLocked() {
	if t.left && len(t.calls) == 0 && t.err == nil {
		t.up = wire.AppendClose(t.up, wire.Normal, "the connection to the server has ended")
		t.endLocked(io.EOF)
	}
}

// sockets makes the connections of net/http, and closes all of them at the end.
type sockets struct {
	config *tls.Config // nil: no TLS

	mu    sync.Mutex // guards the fields below
	first net.Conn   // made by Dial, and not used yet
	open  map[net.Conn]bool
	ended bool
}

// errEnded is the error of a call after the end of its connection.
var errEnded = errors.New("the connection has ended")

// dialError is an error of connecting: the call was not sent.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// next returns a connection for a request.
func (s *sockets) next(ctx context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	first := s.first
	s.first = nil
	s.mu.Unlock()
	if first != nil {
		return first, nil
	}
	nc, err := s.dial(ctx, network, address)
	if err != nil {
		return nil, &dialError{err}
	}
	return nc, nil
}

func (s *sockets) dial(ctx context.Context, network, address string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	nc = &socket{nc, s}
	if s.config != nil {
		tc := tls.Client(nc, s.config)
		if err := tc.HandshakeContext(ctx); err != nil {
			nc.Close()
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
		if !s.keep(nc) {
			return nil, errEnded
		}
		return tc, nil
	}
	if !s.keep(nc) {
		return nil, errEnded
	}
	return nc, nil
}

// keep remembers a connection until it is closed.
func (s *sockets) keep(nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		nc.(*socket).Conn.Close()
		return false
	}
	s.open[nc] = true
	return true
}

// close closes all connections.
func (s *sockets) close() {
	s.mu.Lock()
	s.ended = true
	all := s.open
	s.open = nil
	s.mu.Unlock()
	for nc := range all {
		nc.Close()
	}
}

// socket is a connection that is forgotten when it is closed.
type socket struct {
	net.Conn
	owner *sockets
}

func (s *socket) Close() error {
	s.owner.mu.Lock()
	delete(s.owner.open, s)
	s.owner.mu.Unlock()
	return s.Conn.Close()
}
