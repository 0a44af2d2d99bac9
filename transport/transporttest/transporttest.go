// Package transporttest is the conformance suite for transports: calls, streams, their ends, large
// messages, draining without a failed call, lost connections, many clients and idle ones.
package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// Transport is what Run tests.
type Transport struct {
	// Listen returns a listener and the target with which Dial reaches it. address is the
	// Addr().String() of an earlier listener, which is closed, or empty for any free address.
	Listen func(address string) (l net.Listener, target string, err error)
	// Server and Client are the options that the transport needs.
	Server []anser.ServerOption
	Client []anser.DialOption
	// TLS means that handlers see the TLS state, ClientCertificate that it includes a client
	// certificate.
	TLS, ClientCertificate bool
}

// bound is the timeout of all operations, on a machine that may be busy. A successful test does
// not wait for it.
const bound = 2 * time.Minute

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// Run runs the suite as subtests.
func Run(t *testing.T, transport Transport) {
	for name, test := range map[string]func(*testing.T, Transport){
		"unary":    unary,
		"stream":   stream,
		"cancel":   cancel,
		"deadline": deadline,
		"large":    large,
		"peer":     peer,
		"drain":    drain,
		"loss":     loss,
		"clients":  clients,
		"idle":     idle,
	} {
		t.Run(name, func(t *testing.T) { test(t, transport) })
	}
}

// service is a server of the suite.
type service struct {
	*anser.Server
	target  string
	address string
	conns   *conns
	ended   chan error
	waiting chan struct{} // receives a value when Test.Wait has begun
	over    chan error    // receives the error of the context of Test.Wait
	peers   chan anser.Peer
}

// conns is a listener that records the connections it has accepted.
type conns struct {
	net.Listener
	mu   sync.Mutex // guards list
	list []net.Conn
}

// Accept implements net.Listener.
func (c *conns) Accept() (net.Conn, error) {
	nc, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		c.list = append(c.list, nc)
		c.mu.Unlock()
	}
	return nc, err
}

// cut closes every connection.
func (c *conns) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, nc := range c.list {
		nc.Close()
	}
	c.list = nil
}

// serve starts a server at the address, or a free one. It is closed when the test ends.
func serve(t *testing.T, transport Transport, address string, opts ...anser.ServerOption) *service {
	t.Helper()
	s := &service{
		ended: make(chan error, 1), waiting: make(chan struct{}, 100), over: make(chan error, 100), peers: make(chan anser.Peer, 1),
	}
	s.Server = anser.NewServer(append(append([]anser.ServerOption{silent}, transport.Server...), opts...)...)
	anser.Handle(s.Server, "Test.Echo", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	anser.Handle(s.Server, "Test.Wait", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		s.waiting <- struct{}{}
		<-ctx.Done()
		s.over <- ctx.Err()
		return nil, ctx.Err()
	})
	anser.Handle(s.Server, "Test.Peer", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		p, _ := anser.PeerFrom(ctx)
		s.peers <- p
		return in, nil
	})
	s.serveStreams()
	var l net.Listener
	var err error
	for end := time.Now().Add(bound); ; time.Sleep(10 * time.Millisecond) {
		// A UDP socket is free when its last connection has ended.
		if l, s.target, err = transport.Listen(address); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	s.address = l.Addr().String()
	s.conns = &conns{Listener: l}
	go func() { s.ended <- s.Serve(s.conns) }()
	t.Cleanup(s.end)
	return s
}

// end closes the server and waits. It may be called more than once.
func (s *service) end() {
	s.Close()
	err := <-s.ended
	s.ended <- err
}

func dial(t *testing.T, transport Transport, target string, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	c, err := anser.Dial(target, append(append([]anser.DialOption{silent, anser.NoSnapshot(), anser.Timeout(bound)}, transport.Client...), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// say makes a call that must succeed.
func say(t *testing.T, c *anser.Client, method string, in []byte) {
	t.Helper()
	out, err := anser.Call[[]byte](context.Background(), c, method, &in)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(*out, in) {
		t.Fatalf("%d bytes came back as %d different ones", len(in), len(*out))
	}
}

// eventually waits for effects of goroutines that cannot be waited for.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", bound, what)
		}
	}
}

func unary(t *testing.T, transport Transport) {
	s := serve(t, transport, "")
	c := dial(t, transport, s.target)
	for i := range 100 {
		say(t, c, "Test.Echo", fmt.Appendf(nil, "message %d", i))
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for range 20 {
				in := bytes.Repeat([]byte{byte(i)}, 100*i)
				if out, err := anser.Call[[]byte](t.Context(), c, "Test.Echo", &in); err != nil || !bytes.Equal(*out, in) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Cancelling returns to the caller at once, and ends the handler's context.
func cancel(t *testing.T, transport Transport) {
	s := serve(t, transport, "")
	c := dial(t, transport, s.target)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-s.waiting
		cancel()
	}()
	_, err := anser.Call[[]byte](ctx, c, "Test.Wait", new([]byte("x")))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the call: %v", err)
	}
	if err := <-s.over; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler: %v", err)
	}
	say(t, c, "Test.Echo", []byte("the connection still works"))
}

func deadline(t *testing.T, transport Transport) {
	s := serve(t, transport, "")
	c := dial(t, transport, s.target)
	say(t, c, "Test.Echo", []byte("there is a connection"))
	for limit := 20 * time.Millisecond; ; limit *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, err := anser.Call[[]byte](ctx, c, "Test.Wait", new([]byte("x")))
		cancel()
		// Either side may be the first to notice the deadline.
		e, ok := errors.AsType[*anser.Error](err)
		if !ok || e.Code != anser.DeadlineExceeded {
			t.Fatalf("the call: %v", err)
		}
		if s.Stats().Methods["Test.Wait"].Calls > 0 {
			break
		}
		if limit > bound { // the machine was not just too slow to run it
			t.Fatalf("the call does not begin: %v", err)
		}
	}
	select {
	case err := <-s.over:
		if err == nil {
			t.Error("the handler's context did not end")
		}
	case <-time.After(bound):
		t.Error("the handler did not run, or its context did not end")
	}
}

func large(t *testing.T, transport Transport) {
	const size = 16 << 20
	most, stall := anser.MaxMessage(size), anser.WriteStall(bound)
	patient := anser.Keepalive(bound, bound) // as pings and their answers wait behind the message
	s := serve(t, transport, "", most, stall, patient)
	c := dial(t, transport, s.target, most, stall, patient)
	in := make([]byte, size)
	for i := range in {
		in[i] = byte(i * 7 >> 3)
	}
	say(t, c, "Test.Echo", in)
}

func peer(t *testing.T, transport Transport) {
	s := serve(t, transport, "")
	c := dial(t, transport, s.target)
	say(t, c, "Test.Peer", []byte("x"))
	p := <-s.peers
	if p.Addr == nil || p.Local == nil || p.Local.String() == "" {
		t.Errorf("the peer is %v at %v", p.Addr, p.Local)
	}
	if (p.TLS != nil) != transport.TLS {
		t.Fatalf("the state of TLS is %+v", p.TLS)
	}
	if p.TLS != nil && (!p.TLS.HandshakeComplete || (len(p.TLS.PeerCertificates) > 0) != transport.ClientCertificate) {
		t.Errorf("TLS is complete: %t, with %d certificates of the client", p.TLS.HandshakeComplete, len(p.TLS.PeerCertificates))
	}
}

// Both servers of a client are stopped and started again, one after the other, and no call fails.
func drain(t *testing.T, transport Transport) {
	services := []*service{serve(t, transport, ""), serve(t, transport, "")}
	c := dial(t, transport, both(services[0].target, services[1].target))
	var calls, failed atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for in := []byte("under load"); ; calls.Add(1) {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := anser.Call[[]byte](context.Background(), c, "Test.Echo", &in); err != nil {
					failed.Add(1)
					t.Errorf("a call: %v", err)
				}
			}
		})
	}
	more := func() {
		n := calls.Load()
		eventually(t, "calls continue", func() bool { return calls.Load() > n+100 || failed.Load() > 0 })
	}
	for i, s := range services {
		eventually(t, "both servers have calls", func() bool { return s.Stats().Methods["Test.Echo"].Calls > 0 || failed.Load() > 0 })
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		cancel()
		s.end()
		more()
		services[i] = serve(t, transport, s.address)
		more()
	}
	close(stop)
	wg.Wait()
	t.Logf("%d calls, %d failed", calls.Load(), failed.Load())
}

// both joins two targets.
func both(a, b string) string {
	if _, address, ok := strings.Cut(b, "://"); ok {
		b = address
	}
	return a + "," + b
}

// Losing a connection fails its open calls, and the next call opens another one.
func loss(t *testing.T, transport Transport) {
	s := serve(t, transport, "")
	c := dial(t, transport, s.target)
	for range 3 {
		say(t, c, "Test.Echo", []byte("there is a connection"))
		go func() {
			<-s.waiting
			s.conns.cut()
		}()
		_, err := anser.Call[[]byte](t.Context(), c, "Test.Wait", new([]byte("x")))
		if e, ok := errors.AsType[*anser.Error](err); !ok || e.Code != anser.Unavailable || e.Outcome != anser.OutcomeUnknown {
			t.Errorf("the call: %v", err)
		}
		if err := <-s.over; err == nil {
			t.Error("the handler's context did not end")
		}
	}
	say(t, c, "Test.Echo", []byte("again"))
}

// A hundred clients, each with its own connections.
func clients(t *testing.T, transport Transport) {
	s := serve(t, transport, "", anser.HandshakeTimeout(bound))
	var wg sync.WaitGroup
	for i := range 100 {
		// A different limit keeps a client from sharing the connections of another.
		c := dial(t, transport, s.target, anser.Conns(1), anser.MaxMessage(1<<20+i), anser.ConnectTimeout(bound), anser.HandshakeTimeout(bound))
		wg.Go(func() {
			for range 5 {
				in := fmt.Appendf(nil, "client %d", i)
				if out, err := anser.Call[[]byte](t.Context(), c, "Test.Echo", &in); err != nil || !bytes.Equal(*out, in) {
					t.Error(i, err)
				}
			}
		})
	}
	wg.Wait()
	if n := s.Stats().Conns; n < 100 {
		t.Errorf("there are %d connections", n)
	}
}

// Idle connections are closed, by either side, and opened again when they are needed.
func idle(t *testing.T, transport Transport) {
	for name, opts := range map[string]struct {
		server []anser.ServerOption
		client []anser.DialOption
	}{
		"server": {[]anser.ServerOption{anser.IdleTimeout(time.Millisecond)}, nil},
		"client": {nil, []anser.DialOption{anser.IdleTimeout(time.Millisecond)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, transport, "", opts.server...)
			c := dial(t, transport, s.target, opts.client...)
			say(t, c, "Test.Echo", []byte("x"))
			eventually(t, "the idle connections are closed", func() bool { return s.Stats().Conns == 0 })
			if e := c.Status().Instances[0]; name == "client" && e.Down {
				t.Error("an instance that is not needed counts as down")
			}
			say(t, c, "Test.Echo", []byte("x"))
		})
	}
}
