package badinput_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/compress/all"
	"github.com/anser-rpc/anser/internal/authority"
	"github.com/anser-rpc/anser/internal/benchpb"
	"github.com/anser-rpc/anser/internal/testusage"
)

// transport is a transport to a server.
type transport struct {
	name    string
	address func(t *testing.T) string
	tls     bool
	configs func() (server, client *tls.Config) // nil: identity
	dial    []anser.DialOption                  // of the good clients
}

func loopback(*testing.T) string { return "127.0.0.1:0" }

var transports = []transport{
	{name: "tcp", address: loopback},
	{name: "tls", address: loopback, tls: true},
	{name: "unix", address: func(t *testing.T) string {
		dir, err := os.MkdirTemp("", "bad") // the path of t.TempDir is too long for a socket
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		return "unix://" + filepath.Join(dir, "s")
	}},
}

// identity returns a certificate for 127.0.0.1 and the configuration of clients that trust it.
var identity = sync.OnceValues(func() (server, client *tls.Config) {
	a := authority.New("bad input")
	return &tls.Config{Certificates: []tls.Certificate{a.Issue()}, MinVersion: tls.VersionTLS13},
		&tls.Config{RootCAs: a.Pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
})

// silent suppresses the logs of expected errors.
var silent = anser.Logger(slog.New(slog.DiscardHandler))

type message struct{ A, B int }

// reckless indexes without checks.
type reckless struct{ a byte }

func (r *reckless) MarshalBinary() ([]byte, error) { return []byte{r.a}, nil }

func (r *reckless) UnmarshalBinary(b []byte) error {
	r.a = b[100]
	return nil
}

// target is a server with good clients.
type target struct {
	*anser.Server
	transport
	addr net.Addr
	bad  atomic.Int64 // runs of handlers that must not run
	good []*anser.Client
	// pause is the pause of the good clients after each call of work.
	pause time.Duration

	served  chan error // result of Serve
	stopped bool

	before testusage.Usage // by everything, at rest
}

func newTarget(t *testing.T, over transport, opts ...anser.ServerOption) *target {
	t.Helper()
	if over.configs == nil {
		over.configs = identity
	}
	g := &target{transport: over, pause: 200 * time.Microsecond}
	serverTLS, clientTLS := over.configs()
	opts = append([]anser.ServerOption{anser.HandshakeTimeout(bound)}, opts...)
	opts = append(opts, silent, anser.MaxStreams(maxStreams), anser.AcceptCompression(all.Compressors()...))
	if over.tls {
		opts = append(opts, anser.TLS(serverTLS))
		g.dial = append(slices.Clone(over.dial), anser.TLS(clientTLS))
	}
	g.Server = anser.NewServer(opts...)
	echo := func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil }
	anser.Handle(g.Server, "Bad.Bytes", func(_ context.Context, in *[]byte) (*[]byte, error) {
		g.bad.Add(1)
		return in, nil
	})
	anser.Handle(g.Server, "Bad.Struct", func(_ context.Context, in *message) (*message, error) {
		g.bad.Add(1)
		return in, nil
	})
	anser.Handle(g.Server, "Bad.Proto", func(_ context.Context, in *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
		g.bad.Add(1)
		return in, nil
	})
	anser.Handle(g.Server, "Bad.Self", func(_ context.Context, in *reckless) (*reckless, error) {
		g.bad.Add(1)
		return in, nil
	})
	anser.Handle(g.Server, "Bad.Only", func(_ context.Context, in *message) (*message, error) {
		g.bad.Add(1)
		return in, nil
	}, anser.OnlyCodecs(protobuf.NewJSON()))
	anser.Handle(g.Server, "Bad.Stuck", func(_ context.Context, in *stuck) (*stuck, error) {
		g.bad.Add(1)
		return in, nil
	})
	anser.Handle(g.Server, "Good.Echo", echo)
	anser.Handle(g.Server, "Good.Wait", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		<-ctx.Done()
		return in, nil
	})
	anser.Handle(g.Server, "Good.Slow", func(_ context.Context, in *[]byte) (*[]byte, error) {
		time.Sleep(100 * time.Millisecond)
		return in, nil
	})
	anser.HandleStream(g.Server, "Good.Hold", func(ctx context.Context, _ *anser.Stream[[]byte, []byte]) error {
		<-ctx.Done()
		return ctx.Err()
	})
	l, err := g.Listen(over.address(t))
	if err != nil {
		t.Fatal(err)
	}
	g.addr = l.Addr()
	g.served = make(chan error, 1)
	go func() { g.served <- g.Serve(l) }()
	t.Cleanup(func() { g.stop(t) })
	// Connections are made for one target at a time: with TLS, those for rows that run concurrently
	// would keep a slow machine busy for longer than a server with a short HandshakeTimeout waits.
	connecting.Lock()
	defer connecting.Unlock()
	for range neighbours {
		g.good = append(g.good, g.client(t))
	}
	g.others(t)
	return g
}

var connecting sync.Mutex

// client returns a good client with its own connection.
func (g *target) client(t *testing.T) *anser.Client {
	t.Helper()
	// A separate dialer gives each client its own connection.
	c, err := anser.Dial("tcp://127.0.0.1:1", append([]anser.DialOption{
		silent, anser.NoSnapshot(), anser.Conns(1), anser.Timeout(bound), anser.ConnectTimeout(bound), anser.HandshakeTimeout(bound),
		anser.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, g.addr.Network(), g.addr.String())
		}),
	}, g.dial...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stop closes the clients and the server; further calls do nothing.
func (g *target) stop(t *testing.T) {
	t.Helper()
	if g.stopped {
		return
	}
	g.stopped = true
	for _, c := range g.good {
		c.Close()
	}
	if err := g.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-g.served; !errors.Is(err, anser.ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
}

// others checks that the good connections answer.
func (g *target) others(t *testing.T) {
	t.Helper()
	var wg sync.WaitGroup
	for i, c := range g.good {
		wg.Go(func() {
			in := fmt.Appendf(nil, "hello %d", i)
			out, err := anser.Call[[]byte](context.Background(), c, "Good.Echo", &in, anser.WithFailMode(anser.Failfast))
			if err != nil {
				t.Errorf("a good connection: %v", err)
			} else if string(*out) != string(in) {
				t.Errorf("a good connection: %q, want %q", *out, in)
			}
		})
	}
	wg.Wait()
}

// leastCalls is the minimum number of calls per good connection during a row.
const leastCalls = 16

// work makes the good connections make calls until rest is called, at the latest until the end of
// the test.
func (g *target) work(t *testing.T) (rest func()) {
	t.Helper()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i, c := range g.good {
		wg.Go(func() {
			in := fmt.Appendf(nil, "hello %d", i)
			for n, over := 0, false; n < leastCalls || !over; n++ {
				out, err := anser.Call[[]byte](context.Background(), c, "Good.Echo", &in, anser.WithFailMode(anser.Failfast))
				if err != nil || string(*out) != string(in) {
					t.Errorf("a good connection: %v, %v", out, err)
					return
				}
				select {
				case <-stop:
					over = true
				case <-time.After(g.pause):
				}
			}
		})
	}
	rest = sync.OnceFunc(func() {
		close(stop)
		wg.Wait()
	})
	t.Cleanup(rest)
	return rest
}

// connect opens a connection for a bad client.
func (g *target) connect(t *testing.T) net.Conn {
	t.Helper()
	nc, err := net.Dial(g.addr.Network(), g.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(bound))
	if g.tls {
		_, config := g.configs()
		nc = tls.Client(nc, config)
	}
	return nc
}

// manners are the two ways to write.
var manners = map[string]func(net.Conn, []byte) error{
	"whole": func(nc net.Conn, b []byte) error {
		_, err := nc.Write(b)
		return err
	},
	"bytewise": func(nc net.Conn, b []byte) error {
		// The first and the last bytes; all of them would need too many system calls.
		n := len(b)
		if n > 2*bytewise {
			n = bytewise
		}
		for i := range n {
			if _, err := nc.Write(b[i : i+1]); err != nil {
				return err
			}
		}
		b = b[n:]
		if n = max(len(b)-bytewise, 0); n > 0 {
			if _, err := nc.Write(b[:n]); err != nil {
				return err
			}
		}
		for i := range b[n:] {
			if _, err := nc.Write(b[n+i : n+i+1]); err != nil {
				return err
			}
		}
		return nil
	},
}

// follow performs the manner after the bytes, with a peer of that patience.
func (m manner) follow(nc net.Conn, gone <-chan struct{}, patience time.Duration) {
	switch {
	case m.hangup:
		if half, ok := nc.(interface{ CloseWrite() error }); ok {
			half.CloseWrite()
		}
	case m.trickle:
		for {
			select {
			case <-gone:
				return
			case <-time.After(patience / 4):
			}
			if _, err := nc.Write([]byte{0}); err != nil {
				return
			}
		}
	case m.flood != nil:
		for i := 0; ; i++ {
			select {
			case <-gone:
				return
			default:
			}
			if _, err := nc.Write(m.flood(i)); err != nil {
				return
			}
		}
	}
}
