package anser_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/wire"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// silent suppresses the logs of expected failures.
var silent = anser.Logger(slog.New(slog.DiscardHandler))

// Args and Reply are the messages of the arithmetic service.
type Args struct{ A, B int }

// Reply is a result.
type Reply struct{ C int }

func mul(_ context.Context, in *Args) (*Reply, error) { return &Reply{in.A * in.B}, nil }

func echo(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil }

// text is a message for the raw codec.
func text(s string) *[]byte {
	b := []byte(s)
	return &b
}

// handler is a handler whose messages are bytes.
type handler = func(ctx context.Context, in *[]byte) (*[]byte, error)

// serve runs a server with the methods on l until the test ends.
func serve(t testing.TB, l net.Listener, methods map[string]handler, opts ...anser.ServerOption) *anser.Server {
	t.Helper()
	s := anser.NewServer(append([]anser.ServerOption{silent}, opts...)...)
	for name, h := range methods {
		if err := anser.Handle(s, name, h); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, l)
	return s
}

// run serves on l until the test ends.
func run(t testing.TB, s *anser.Server, l net.Listener) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		// A test may close the listener under the server.
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
}

// dial makes a client that is closed when the test ends.
func dial(t testing.TB, target string, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	c, err := anser.Dial(target, append([]anser.DialOption{silent, anser.NoSnapshot()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// call makes a call with the raw codec.
func call(ctx context.Context, c *anser.Client, method, in string, opts ...anser.CallOption) (string, error) {
	out, err := anser.Call[[]byte](ctx, c, method, text(in), opts...)
	if err != nil {
		return "", err
	}
	return string(*out), nil
}

// listen returns a listener on a free port of the loopback.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// fault returns err as an *anser.Error, or fails the test.
func fault(t testing.TB, err error) *anser.Error {
	t.Helper()
	var e *anser.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v (%T) is not an *anser.Error", err, err)
	}
	return e
}

// wantFault fails the test unless err has the code and the outcome.
func wantFault(t testing.TB, err error, code anser.Code, outcome anser.Outcome) *anser.Error {
	t.Helper()
	e := fault(t, err)
	if e.Code != code || e.Outcome != outcome {
		t.Fatalf("%v: %s, %s; want %s, %s", err, e.Code, e.Outcome, code, outcome)
	}
	return e
}

// bubble runs f in a synctest bubble, where time is not real.
func bubble(t *testing.T, f func(t *testing.T, network *ansertest.Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, new(ansertest.Network)) })
}

// rawClient connects to a server of the network and returns a peer that has completed the
// handshake.
func rawClient(t testing.TB, n *ansertest.Network, address string) *wirepeer.Peer {
	t.Helper()
	nc, err := n.Dial(context.Background(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	p := wirepeer.New(nc)
	if _, err := p.Handshake(); err != nil {
		t.Fatal(err)
	}
	return p
}

// rawServer accepts connections on l and runs f for each, after the handshake, until the test ends.
func rawServer(t testing.TB, l net.Listener, f func(p *wirepeer.Peer)) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, nc)
			mu.Unlock()
			wg.Go(func() {
				p := wirepeer.New(nc)
				own := wire.DefaultSettings()
				own.Life, own.KeyAge = 1, 300_000
				if p.Send(wirepeer.Hello(own)) != nil {
					return
				}
				if _, err := p.ReadHello(); err == nil {
					f(p)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, nc := range conns {
			nc.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
}

// patience is how long a test waits for something on a machine that is busy with other things.
const patience = 5 * time.Minute

// eventually waits until f is true. It is for goroutines that cannot be waited for.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// feed is a registry whose answers the test decides.
type feed struct {
	events chan func(update func([]registry.Instance), trouble func(error))
}

func newFeed() *feed {
	return &feed{make(chan func(func([]registry.Instance), func(error)))}
}

// Watch implements registry.Resolver.
func (f *feed) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	for {
		select {
		case e := <-f.events:
			e(update, trouble)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// list makes the registry answer with instances at the addresses; it returns once the client has
// them.
func (f *feed) list(addresses ...string) {
	var list []registry.Instance
	for _, a := range addresses {
		list = append(list, registry.Instance{Service: "arith", Address: a})
	}
	f.instances(list...)
}

func (f *feed) instances(list ...registry.Instance) {
	done := make(chan struct{})
	f.events <- func(update func([]registry.Instance), _ func(error)) {
		update(list)
		close(done)
	}
	<-done
}

// down makes the registry report an error.
func (f *feed) down(err error) {
	done := make(chan struct{})
	f.events <- func(_ func([]registry.Instance), trouble func(error)) {
		trouble(err)
		close(done)
	}
	<-done
}

// scheme returns a scheme for targets such as "fed://arith".
func (f *feed) scheme() registry.Scheme {
	return registry.Scheme{Name: "fed", Open: func(*url.URL) (registry.Resolver, string, error) { return f, "arith", nil }}
}

// result is the result of a call that apart makes.
type result struct {
	done chan struct{}
	out  *[]byte
	err  error
}

func (r *result) Wait() (*[]byte, error) {
	<-r.done
	return r.out, r.err
}

// apart makes a call on a goroutine of its own, where [anser.Go] would wait for room on the
// connection.
func apart(ctx context.Context, c *anser.Client, method string, in *[]byte, opts ...anser.CallOption) *result {
	r := &result{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.out, r.err = anser.Call[[]byte](ctx, c, method, in, opts...)
	}()
	return r
}
