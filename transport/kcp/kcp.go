// Package kcp carries Anser's connections over KCP, a protocol over UDP that trades bandwidth for
// latency on lossy networks: it retransmits sooner than TCP and never slows down.
//
//	l, err := kcp.Listen("127.0.0.1:4000", kcp.Passphrase("correct horse", "a salt for this service"))
//	go server.Serve(l)
//
//	c, err := anser.Dial("kcp://127.0.0.1:4000", kcp.Transport(kcp.Passphrase("correct horse", "a salt for this service")))
//
// KCP's cipher provides confidentiality only: packets are not authenticated, so an attacker on the
// path can modify or replay them, and neither side is authenticated. The option [anser.TLS] on
// both sides adds TLS over KCP, which provides all of that; use it on every network that you do
// not control. A server on any address except loopback requires it, and [anser.Authenticate], or
// the option [anser.InsecurePublic]: a passphrase does not replace them. KCP has no congestion
// control either.
//
// KCP has no end of a connection. This package adds records, docs/protocol.md §1, so that closing
// one direction is noticed at once. The death of a process is detected by [anser.Keepalive].
package kcp

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/xtaci/kcp-go/v5"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/asyncconn"
	"github.com/anser-rpc/anser/internal/connqueue"
)

// Option configures [Transport] and [Listen]. Both sides need the same Passphrase and FEC.
type Option func(*options)

type options struct {
	key          []byte
	data, parity int
	window       int
	mtu          int
	interval     time.Duration
	err          error
}

// iterations is OWASP's recommendation for PBKDF2 with SHA-256.
const iterations = 600_000

// Passphrase encrypts packets with AES-256. The key is derived from the passphrase and the salt by
// PBKDF2 with SHA-256, which takes a large part of a second, once per use of the option. The salt
// need not be secret but should be specific to the service and at least 8 bytes long.
func Passphrase(passphrase, salt string) Option {
	return func(o *options) {
		if passphrase == "" || len(salt) < 8 {
			o.err = errors.New("kcp.Passphrase: want a passphrase, and a salt of at least 8 bytes")
			return
		}
		o.key, o.err = pbkdf2.Key(sha256.New, passphrase, []byte(salt), iterations, 32)
	}
}

// FEC adds parity packets to each group of data packets (Reed-Solomon), so that up to parity lost
// packets of a group need not be retransmitted: (10, 3) costs 30 % more traffic. The default is
// none.
func FEC(data, parity int) Option {
	return func(o *options) {
		if data < 1 || parity < 1 || data+parity > 255 {
			o.err = fmt.Errorf("kcp.FEC(%d, %d): want at least 1 each, and 255 at most together", data, parity)
			return
		}
		o.data, o.parity = data, parity
	}
}

// Window sets the maximum number of packets in flight per direction; the default is 1024. With
// packets of 1,350 bytes and a round trip of 100 ms that allows 13 MB/s.
func Window(packets int) Option {
	return func(o *options) {
		if packets < 32 || packets > 32<<10 {
			o.err = fmt.Errorf("kcp.Window(%d): want 32 to 32768 packets", packets)
			return
		}
		o.window = packets
	}
}

// MTU sets the size of packets in bytes; the default is 1350.
func MTU(bytes int) Option {
	return func(o *options) {
		if bytes < 576 || bytes > 1500 {
			o.err = fmt.Errorf("kcp.MTU(%d): want 576 to 1500 bytes", bytes)
			return
		}
		o.mtu = bytes
	}
}

// Interval sets how often KCP checks for retransmissions; the default is 10 ms. A longer interval
// uses less CPU time.
func Interval(d time.Duration) Option {
	return func(o *options) {
		if d < 10*time.Millisecond || d > 5*time.Second {
			o.err = fmt.Errorf("kcp.Interval(%v): want 10 ms to 5 s", d)
			return
		}
		o.interval = d
	}
}

func newOptions(opts []Option) (*options, error) {
	o := &options{window: 1024, mtu: 1350, interval: 10 * time.Millisecond}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("kcp: an option is nil")
		}
		if opt(o); o.err != nil {
			return nil, o.err
		}
	}
	return o, nil
}

// block returns the cipher for packets, or nil.
func (o *options) block() kcp.BlockCrypt {
	if o.key == nil {
		return nil
	}
	return &pooledCipher{sync.Pool{New: func() any {
		b, err := kcp.NewAESBlockCrypt(o.key)
		if err != nil {
			panic(err) // the key has 32 bytes
		}
		return b
	}}}
}

// pooledCipher is safe for concurrent use. kcp-go's ciphers are not, and the sessions of a
// listener share one.
type pooledCipher struct{ pool sync.Pool }

// Encrypt implements kcp.BlockCrypt.
func (p *pooledCipher) Encrypt(dst, src []byte) {
	b := p.pool.Get().(kcp.BlockCrypt)
	b.Encrypt(dst, src)
	p.pool.Put(b)
}

// Decrypt implements kcp.BlockCrypt.
func (p *pooledCipher) Decrypt(dst, src []byte) {
	b := p.pool.Get().(kcp.BlockCrypt)
	b.Decrypt(dst, src)
	p.pool.Put(b)
}

// tune configures a session.
func (o *options) tune(s *kcp.UDPSession) {
	s.SetWriteDelay(false)
	s.SetACKNoDelay(true)
	s.SetNoDelay(1, int(o.interval.Milliseconds()), 2, 1)
	s.SetWindowSize(o.window, o.window)
	s.SetMtu(o.mtu)
}

// Transport supports targets of the form "kcp://host:port". Invalid options are an error of
// [anser.Dial].
func Transport(opts ...Option) anser.Transport {
	o, err := newOptions(opts)
	return anser.Transport{Scheme: "kcp", Err: err, Dial: func(ctx context.Context, address string, _ *tls.Config) (net.Conn, error) {
		s, err := kcp.DialWithOptions(address, o.block(), o.data, o.parity)
		if err != nil {
			return nil, fmt.Errorf("KCP with %s: %w", address, err)
		}
		o.tune(s)
		return newConn(s, func() {}), nil
	}}
}

// Listen returns a listener for [anser.Server.Serve] at the UDP address "host:port".
//
// Closing the listener refuses new connections; existing ones belong to the server. The socket is
// closed when the last of them has ended.
func Listen(address string, opts ...Option) (*Listener, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("kcp.Listen(%q): %w", address, err)
	}
	socket, err := net.ListenUDP("udp", at)
	if err != nil {
		return nil, fmt.Errorf("kcp.Listen(%q): %w", address, err)
	}
	k, err := kcp.ServeConn(o.block(), o.data, o.parity, socket)
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("kcp.Listen(%q): %w", address, err)
	}
	l := &Listener{
		queue: connqueue.New(connqueue.Addr{Scheme: "kcp", Address: socket.LocalAddr().String()}),
		kcp:   k, conns: connqueue.NewCounter(), ended: make(chan struct{}),
	}
	var accepting sync.WaitGroup
	accepting.Go(func() { l.accept(o) })
	go func() { // until Close was called and the last connection has ended
		defer close(l.ended)
		<-l.queue.Done()
		l.conns.Watch()
		<-l.conns.None()
		socket.Close()
		accepting.Wait()
		k.Close()
	}()
	return l, nil
}

// Listener accepts KCP connections. All methods are safe for concurrent use.
type Listener struct {
	queue *connqueue.Queue
	kcp   *kcp.Listener
	conns *connqueue.Counter
	ended chan struct{}
}

// accept accepts sessions until the socket is closed.
func (l *Listener) accept(o *options) {
	for {
		s, err := l.kcp.AcceptKCP()
		if err != nil {
			l.queue.Close() // without a socket, no connection can arrive
			l.dropWaiting()
			return
		}
		o.tune(s)
		l.conns.Add(1)
		if c := newConn(s, func() { l.conns.Add(-1) }); !l.queue.Put(c) {
			c.Close()
		}
	}
}

// dropWaiting closes the sessions that were not accepted before the end of the socket: a late
// packet of a connection that has ended makes a new one. AcceptKCP chooses at random between a
// session and the error of the socket.
func (l *Listener) dropWaiting() {
	for failed := 0; failed < 64; failed++ {
		if s, err := l.kcp.AcceptKCP(); err == nil {
			s.Close()
			failed = 0
		}
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) { return l.queue.Accept() }

// Close implements net.Listener. It does not wait for the connections; [Listener.Wait] does.
func (l *Listener) Close() error { return l.queue.Close() }

// Wait must be called after Close. It waits until the last connection has ended and the socket is
// closed.
func (l *Listener) Wait() { <-l.ended }

// Addr implements net.Listener; its network is "kcp".
func (l *Listener) Addr() net.Addr { return l.queue.Addr() }

func newConn(s *kcp.UDPSession, onEnd func()) *asyncconn.Conn {
	return asyncconn.New(newRecords(s, onEnd), s.LocalAddr(), s.RemoteAddr())
}
