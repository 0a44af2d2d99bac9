// Package quic carries Anser over QUIC: encrypted, over UDP, and without one lost packet holding up what it
// does not concern.
//
//	l, err := quic.Listen("0.0.0.0:443", tlsConfig)
//	go server.Serve(l)
//
//	c, err := anser.Dial("quic://rpc.example.org:443", quic.Transport(), anser.TLS(config))
//
// Every connection of Anser is a stream of QUIC, and all that a client has to one address share one
// connection of QUIC: one handshake, one congestion control. Calls are spread over eight such streams unless
// [anser.Conns] says otherwise, so that a lost packet delays the calls of the streams it carried and no
// others. docs/decisions has the reasons.
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

// DefaultStreams is how many streams of QUIC, and so connections of Anser, a client has to an address
// without the option [anser.Conns].
const DefaultStreams = 8

const (
	maxStreams = 10_000           // that a client may open on one connection of QUIC
	maxIdle    = 30 * time.Second // without a packet; keepalives are sent in half of it
	linger     = time.Second      // for the other side to close a connection without streams
	refused    = 1                // error code: the server takes no more streams on this connection
)

// config is that of both sides. The window of the connection is several times that of a stream, so that
// one whose reader is slow does not hold up the others.
func config() *quic.Config {
	return &quic.Config{
		MaxIdleTimeout: maxIdle, KeepAlivePeriod: maxIdle / 2,
		MaxIncomingStreams: maxStreams, MaxIncomingUniStreams: -1,
		MaxStreamReceiveWindow: 6 << 20, MaxConnectionReceiveWindow: 48 << 20,
	}
}

// tlsOf completes a configuration of TLS.
func tlsOf(c *tls.Config) *tls.Config {
	c = c.Clone()
	if len(c.NextProtos) == 0 {
		c.NextProtos = []string{anser.ALPN}
	}
	c.MinVersion = tls.VersionTLS13 // QUIC has no other
	return c
}

// Transport lets a client dial "quic://host:port". The option [anser.TLS] configures TLS; without it the
// authorities of the system are trusted.
func Transport() anser.Transport {
	d := &dialer{links: make(map[endpoint]*link)}
	return anser.Transport{Scheme: "quic", Secure: true, Conns: DefaultStreams, StreamsApart: true, Dial: d.dial}
}

// dialer holds the connections of QUIC of a client.
type dialer struct {
	mu    sync.Mutex // guards links, and streams of each
	links map[endpoint]*link
}

// endpoint tells connections of QUIC apart.
type endpoint struct {
	address string
	config  *tls.Config
}

// link is a connection of QUIC, or the making of one.
type link struct {
	key     endpoint
	made    chan struct{} // closed when conn or err is there
	conn    *quic.Conn
	err     error
	streams int // open ones, and those that are being opened
}

// dial opens a stream, on a connection of QUIC that there is if there is one.
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
				continue // it was another one's time that was over
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

// link returns the link for the address, and whether it is the caller's to make.
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

// ended reports whether the connection was made and is not there any more.
func (l *link) ended() bool {
	select {
	case <-l.made:
		return l.conn == nil || l.conn.Context().Err() != nil
	default:
		return false
	}
}

// forget takes a link out that is of no use for further streams.
func (d *dialer) forget(l *link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.links[l.key] == l {
		delete(d.links, l.key)
	}
}

// release gives a stream back. The last one closes the connection.
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

// Listen returns a listener for [anser.Server.Serve] at the address of UDP, "host:port". Each stream that a
// client opens is a connection. The configuration of TLS needs a certificate; it is not changed. The server
// needs no option [anser.TLS], and lays no TLS over these connections if it has one. On any address but loopback it
// needs [anser.Authenticate], unless the configuration demands and verifies certificates.
//
// Closing the listener refuses new connections of QUIC and leaves those that stand to the server. The
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

// Listener accepts streams of QUIC. All methods are safe for concurrent use.
type Listener struct {
	queue     *connqueue.Queue
	socket    *net.UDPConn
	demands   bool // a certificate of each client
	transport *quic.Transport
	quic      *quic.Listener
	conns     sync.WaitGroup // the goroutine that accepts, and one for each connection
	ended     chan struct{}
}

// accept takes connections of QUIC until Close.
func (l *Listener) accept() {
	for {
		conn, err := l.quic.Accept(context.Background())
		if err != nil {
			l.queue.Close() // without a socket, nothing comes any more
			return
		}
		l.conns.Go(func() { l.serve(conn) })
	}
}

// serve takes the streams of one connection until it ends. When the listener is closed, the connection is when
// its last stream has ended.
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
	// The client closes it when it has read the last words.
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

// Wait waits until the last connection has ended and the socket is closed, after Close.
func (l *Listener) Wait() { <-l.ended }

// Addr implements net.Listener; its network is "quic".
func (l *Listener) Addr() net.Addr { return l.queue.Addr() }

// Protection says that QUIC encrypts, and whether the configuration of TLS demands certificates of clients.
func (l *Listener) Protection() anser.Protection {
	return anser.Protection{Encrypted: true, Authenticated: l.demands}
}
