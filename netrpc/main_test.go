package netrpc_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	stock "net/rpc"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/netrpc"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// Args and Reply are the messages of the arithmetic service.
type Args struct{ A, B int }

// Reply is a result.
type Reply struct{ C int }

// Arith is a typical service for net/rpc.
type Arith int

// Add takes a value.
func (*Arith) Add(args Args, reply *Reply) error {
	reply.C = args.A + args.B
	return nil
}

// Mul takes a pointer.
func (*Arith) Mul(args *Args, reply *Reply) error {
	reply.C = args.A * args.B
	return nil
}

// Div fails for zero.
func (*Arith) Div(args *Args, reply *Reply) error {
	if args.B == 0 {
		return errors.New("divide by zero")
	}
	reply.C = args.A / args.B
	return nil
}

// Count returns a value that is not a struct.
func (*Arith) Count(word string, reply *map[rune]int) error {
	for _, r := range word {
		(*reply)[r]++
	}
	return nil
}

// Panic panics.
func (*Arith) Panic(*Args, *Reply) error { panic("a secret") }

// Waits is a service whose methods wait.
type Waits struct {
	entered chan context.Context
	release chan struct{}
}

func newWaits() *Waits {
	return &Waits{entered: make(chan context.Context, 100), release: make(chan struct{})}
}

// Here waits until it is released or its context ends.
func (w *Waits) Here(ctx context.Context, _ *Args, reply *Reply) error {
	w.entered <- ctx
	select {
	case <-w.release:
		reply.C = 1
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stubborn waits until it is released.
func (w *Waits) Stubborn(ctx context.Context, _ *Args) (*Reply, error) {
	w.entered <- ctx
	<-w.release
	return &Reply{C: 1}, nil
}

// quiet returns a server whose log is discarded.
func quiet(services ...any) *netrpc.Server {
	s := &netrpc.Server{Logger: slog.New(slog.DiscardHandler), HandshakeTimeout: time.Minute}
	for _, service := range services {
		if err := s.Register(service); err != nil {
			panic(err)
		}
	}
	return s
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serve serves with s on loopback until the test ends, and returns the address.
func serve(t testing.TB, s *netrpc.Server, codec func(io.ReadWriteCloser) netrpc.ServerCodec) string {
	t.Helper()
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, codec) }()
	t.Cleanup(func() {
		closeServer(t, s)
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// serveInMemory serves with s in memory until the test ends, and returns a function that connects
// to it. In a synctest bubble, time costs nothing and is exact.
func serveInMemory(t testing.TB, s *netrpc.Server, codec func(io.ReadWriteCloser) netrpc.ServerCodec) func() net.Conn {
	t.Helper()
	network := new(ansertest.Network)
	l := network.Listen("server")
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, codec) }()
	t.Cleanup(func() {
		closeServer(t, s)
		<-served
	})
	return func() net.Conn {
		conn, err := network.Dial(t.Context(), "", "server")
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
}

// closeServer closes a server whose methods have all ended, or end with their contexts. Close
// itself waits one second for them, which may be too short on a busy machine.
func closeServer(t testing.TB, s *netrpc.Server) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	err := s.Close()
	for err != nil && time.Now().Before(end) {
		err = s.Close()
	}
	if err != nil {
		t.Errorf("Close: %v", err)
	}
}

// serveHTTP serves a handler until the test ends, and returns the address.
func serveHTTP(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// stockServe serves services with net/rpc until the test ends.
func stockServe(t testing.TB, codec func(io.ReadWriteCloser) stock.ServerCodec, services ...any) string {
	t.Helper()
	s := stock.NewServer()
	for _, service := range services {
		if err := s.Register(service); err != nil {
			t.Fatal(err)
		}
	}
	l := listen(t)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if codec == nil {
				go s.ServeConn(conn)
			} else {
				go s.ServeCodec(codec(conn))
			}
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// client closes c when the test ends.
func client[C io.Closer](t testing.TB, c C, err error) C {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func dial(t testing.TB, addr string) *netrpc.Client {
	t.Helper()
	c, err := netrpc.Dial("tcp", addr)
	return client(t, c, err)
}

// mustAdd checks that the server answers.
func mustAdd(t testing.TB, c interface {
	Call(method string, args, reply any) error
},
) {
	t.Helper()
	var reply Reply
	if err := c.Call("Arith.Add", Args{7, 8}, &reply); err != nil || reply.C != 15 {
		t.Fatalf("Add: %v, %v", reply, err)
	}
}
