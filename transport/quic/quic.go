// Package quic carries Anser over QUIC: encrypted, over UDP, and a lost packet delays only the
// streams that it carried.
//
//	l, err := quic.Listen("0.0.0.0:443", tlsConfig)
//	go server.Serve(l)
//
//	c, err := anser.Dial("quic://rpc.example.org:443", quic.Transport(), anser.TLS(config))
//
// Every Anser connection is a QUIC stream, and all connections of a client to one address share
// one QUIC connection: one handshake, one congestion control. By default calls are spread over
// eight such streams, see [anser.Conns], so that a lost packet delays the calls on its own streams
// only. docs/decisions has the reasons.
package quic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/connqueue"
)

// DefaultStreams is the number of QUIC streams, and therefore Anser connections, that a client has
// per address without the option [anser.Conns].
const DefaultStreams = 8

const (
	maxStreams = 10_000           // that a client may open per QUIC connection
	maxIdle    = 30 * time.Second // without a packet; keepalives are sent after half of it
	linger     = time.Second      // for the peer to close a connection without streams
	refused    = 1                // error code: the server refuses further streams on this connection
)

// config returns the configuration of both sides. The window of the connection is several times
// that of a stream, so that a stream with a slow reader does not block the others.
func config() *quic.Config {
	return &quic.Config{
		MaxIdleTimeout: maxIdle, KeepAlivePeriod: maxIdle / 2,
		MaxIncomingStreams: maxStreams, MaxIncomingUniStreams: -1,
		MaxStreamReceiveWindow: 6 << 20, MaxConnectionReceiveWindow: 48 << 20,
	}
}

// tlsOf completes a TLS configuration.
func tlsOf(c *tls.Config) *tls.Config {
	c = c.Clone()
	if len(c.NextProtos) == 0 {
		c.NextProtos = []string{anser.ALPN}
	}
	c.MinVersion = tls.VersionTLS13 // QUIC supports no other
	return c
}

// Transport supports targets of the form "quic://host:port". The option [anser.TLS] configures
// TLS; by default the system's roots are trusted.
func Transport() anser.Transport {
	d := &dialer{links: make(map[endpoint]*link)}
	return anser.Transport{Scheme: "quic", Secure: true, Conns: DefaultStreams, StreamsApart: true, Dial: d.dial}
}

// dialer holds the QUIC connections of a client.
type dialer struct {
	mu    sync.Mutex // guards links, and streams of each
	links map[endpoint]*link
}

// endpoint identifies a QUIC connection.
type endpoint struct {
	address string
	config  *tls.Config
}

// link is a QUIC connection, or one being established.
type link struct {
	key     endpoint
	made    chan struct{} // closed when conn or err is set
	conn    *quic.Conn
	err     error
	streams int // open streams, including those being opened
}

// dial opens a stream, on an existing QUIC connection if there is one.
func (d *dialer) dial(ctx context.Context, address string, config *tls.Config) (net.Conn, error) {
	for {
		l, mine := d.link(address, config)
		if mine {
			l.conn, l.err = connect(ctx, address, config)
			close(l.made)
		}
		select {
		case <-l.made:
		case <-ctx.Done():
			d.release(l)
			return nil, ctx.Err()
		}
		if l.err != nil {
			d.release(l)
			if !mine && errors.Is(l.err, context.Canceled) && ctx.Err() == nil {
				continue // the context of another caller had ended
			}
			return nil, l.err
		}
		s, err := l.conn.OpenStreamSync(ctx)
		if err == nil {
			c := newConn(s, l.conn, func() { d.release(l) })
			c.onRefused = func() { d.forget(l) }
			return c, nil
		}
		d.forget(l)
		d.release(l)
		if mine || ctx.Err() != nil {
			return nil, err
		}
	}
}

// link returns the link for the address, and whether the caller must establish it.
func (d *dialer) link(address string, config *tls.Config) (l *link, mine bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := endpoint{address, config}
	l = d.links[key]
	if l == nil || l.ended() {
		l = &link{key: key, made: make(chan struct{})}
		d.links[key] = l
		mine = true
	}
	l.streams++
	return l, mine
}

// ended reports whether the connection was established and has ended.
func (l *link) ended() bool {
	select {
	case <-l.made:
		return l.conn == nil || l.conn.Context().Err() != nil
	default:
		return false
	}
}

// forget removes a link on which no further streams can be opened.
func (d *dialer) forget(l *link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.links[l.key] == l {
		delete(d.links, l.key)
	}
}

// release releases a stream. The last one closes the connection.
func (d *dialer) release(l *link) {
	d.mu.Lock()
	l.streams--
	last := l.streams == 0
	if last && d.links[l.key] == l {
		delete(d.links, l.key)
	}
	d.mu.Unlock()
	if last && !l.ended() {
		l.conn.CloseWithError(0, "")
	}
}

func connect(ctx context.Context, address string, c *tls.Config) (*quic.Conn, error) {
	conn, err := quic.DialAddr(ctx, address, tlsOf(c), config())
	if err != nil {
		return nil, fmt.Errorf("QUIC with %s: %w", address, err)
	}
	return conn, nil
}

// Listen returns a listener for [anser.Server.Serve] at the UDP address "host:port". Each stream
// that a client opens is a connection. The TLS configuration must have a certificate; it is not
// modified. The server does not need the option [anser.TLS], which has no effect on these
// connections. On any address except loopback it requires [anser.Authenticate], unless the
// configuration requires and verifies client certificates.
//
// Closing the listener refuses new QUIC connections; existing ones belong to the server. The
// socket is closed when the last of them has ended.
func Listen(address string, config *tls.Config) (*Listener, error) {
	if config == nil {
		return nil, fmt.Errorf("quic.Listen(%q): there is no QUIC without TLS: give it a configuration with a certificate", address)
	}
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("quic.Listen(%q): %w", address, err)
	}
	socket, err := net.ListenUDP("udp", at)
	if err != nil {
		return nil, fmt.Errorf("quic.Listen(%q): %w", address, err)
	}
	return newListener(socket, config)
}

func newListener(socket *net.UDPConn, c *tls.Config) (*Listener, error) {
	l := &Listener{
		queue:  connqueue.New(connqueue.Addr{Scheme: "quic", Address: socket.LocalAddr().String()}),
		socket: socket, demands: anser.DemandsCertificates(c), transport: &quic.Transport{Conn: socket}, ended: make(chan struct{}),
	}
	var err error
	if l.quic, err = l.transport.Listen(tlsOf(c), config()); err != nil {
		socket.Close()
		return nil, fmt.Errorf("quic.Listen: %w", err)
	}
	l.conns.Go(l.accept)
	go func() { // until Close was called and the last connection has ended
		defer close(l.ended)
		l.conns.Wait()
		l.transport.Close()
		socket.Close()
	}()
	return l, nil
}

// Listener accepts QUIC streams. All methods are safe for concurrent use.
type Listener struct {
	queue     *connqueue.Queue
	socket    *net.UDPConn
	demands   bool // requires a certificate of each client
	transport *quic.Transport
	quic      *quic.Listener
	conns     sync.WaitGroup // the accepting goroutine, and one per connection
	ended     chan struct{}
}

// accept accepts QUIC connections until Close.
func (l *Listener) accept() {
	for {
		conn, err := l.quic.Accept(context.Background())
		if err != nil {
			l.queue.Close() // without a socket, no connection can arrive
			return
		}
		l.conns.Go(func() { l.serve(conn) })
	}
}

// serve accepts the streams of one connection until it ends. After the listener was closed, the
// connection is closed when its last stream has ended.
func (l *Listener) serve(conn *quic.Conn) {
	streams := connqueue.NewCounter()
	var retired sync.WaitGroup
	retired.Go(func() { l.retire(conn, streams) })
	defer retired.Wait()
	for {
		s, err := conn.AcceptStream(context.Background()) // ends with the connection
		if err != nil {
			return
		}
		streams.Add(1)
		if c := newConn(s, conn, func() { streams.Add(-1) }); !l.queue.Put(c) {
			c.refuse()
		}
	}
}

// retire closes a connection whose streams have ended, after Close.
func (l *Listener) retire(conn *quic.Conn, streams *connqueue.Counter) {
	for _, c := range []<-chan struct{}{l.queue.Done(), streams.None()} {
		select {
		case <-conn.Context().Done():
			return
		case <-c:
		}
		streams.Watch()
	}
	// The client closes it when it has read the remaining data.
	t := time.NewTimer(linger)
	defer t.Stop()
	select {
	case <-conn.Context().Done():
	case <-t.C:
	}
	conn.CloseWithError(0, "")
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) { return l.queue.Accept() }

// Close implements net.Listener. It does not wait for the connections; [Listener.Wait] does.
func (l *Listener) Close() error {
	l.queue.Close()
	return l.quic.Close()
}

// Wait must be called after Close. It waits until the last connection has ended and the socket is
// closed.
func (l *Listener) Wait() { <-l.ended }

// Addr implements net.Listener; its network is "quic".
func (l *Listener) Addr() net.Addr { return l.queue.Addr() }

// Protection reports that QUIC encrypts, and whether the TLS configuration requires client
// certificates.
func (l *Listener) Protection() anser.Protection {
	return anser.Protection{Encrypted: true, Authenticated: l.demands}
}
