package badinput_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/compress/all"
	"github.com/anser-rpc/anser/internal/benchpb"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

const (
	bound      = 30 * time.Second // within which everything has to happen, on a busy machine too
	patience   = 5 * time.Second  // of a call to a bad server
	impatience = 300 * time.Millisecond
	neighbours = 8       // good connections beside the bad one
	bytewise   = 4 << 10 // bytes of a row that are sent one by one
	heapGrowth = 8 << 20
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // unless the command line says otherwise: most rows wait
	before := measure()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		// Only now does package testing let go of what the tests had.
		if err := before.compare(); err != nil {
			fmt.Println(err)
			code = 1
		}
		fmt.Println(held.String())
		os.Exit(code)
	}))
}

// tally counts rows by their numbers.
type tally struct {
	mu   sync.Mutex
	rows map[int]bool // whether everything of the row has passed
}

var held = tally{rows: make(map[int]bool)}

// note enters the row when its test ends.
func (y *tally) note(t *testing.T, number int) {
	t.Cleanup(func() {
		y.mu.Lock()
		defer y.mu.Unlock()
		before, seen := y.rows[number]
		y.rows[number] = !t.Failed() && (before || !seen)
	})
}

func (y *tally) String() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	n := 0
	for _, ok := range y.rows {
		if ok {
			n++
		}
	}
	return fmt.Sprintf("%d rows, %d held", len(y.rows), n)
}

// each runs f for the rows that are tried, in parallel.
func each(t *testing.T, tried func(row) bool, f func(t *testing.T, r row)) {
	seen := make(map[int]int)
	for _, r := range rows() {
		if !tried(r) {
			continue
		}
		name := fmt.Sprintf("row%02d", r.number)
		if n := seen[r.number]; n > 0 {
			name += string(rune('a' + n))
		}
		seen[r.number]++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(r.name, r.note)
			held.note(t, r.number)
			f(t, r)
		})
	}
}

// usage is what the process holds.
type usage struct {
	heap int64
	fds  int
}

func measure() usage {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the poller has descriptors of its own
	if err == nil {
		l.Close()
	}
	for range 3 {
		runtime.GC() // pools give up what they hold in two steps
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{heap: int64(m.HeapAlloc)}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil { // Linux
		u.fds = len(list)
	}
	return u
}

// compare waits until the process holds no more than it did, and says what it holds otherwise.
func (u usage) compare() error {
	for end := time.Now().Add(bound); ; time.Sleep(50 * time.Millisecond) {
		now := measure()
		if now.fds <= u.fds && now.heap-u.heap <= heapGrowth {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d KiB of heap and %d file descriptors are left, before %d KiB and %d", now.heap>>10, now.fds, u.heap>>10, u.fds)
		}
	}
}

// transport is a way to reach a server.
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
		dir, err := os.MkdirTemp("", "bad") // t.TempDir is too long for a socket
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		return "unix://" + filepath.Join(dir, "s")
	}},
}

// identity is a certificate for 127.0.0.1 and those who trust it.
var identity = sync.OnceValues(func() (server, client *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bad input"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS13},
		&tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
})

// silent keeps the logs of what is expected to go wrong out of the output.
var silent = anser.Logger(slog.New(slog.DiscardHandler))

type message struct{ A, B int }

// reckless indexes before it looks.
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
}

func newTarget(t *testing.T, over transport, opts ...anser.ServerOption) *target {
	t.Helper()
	if over.configs == nil {
		over.configs = identity
	}
	g := &target{transport: over}
	serverTLS, clientTLS := over.configs()
	opts = append(opts, silent, anser.MaxStreams(maxStreams), anser.AcceptCompression(all.Compressors()...))
	var dialTLS []anser.DialOption
	if over.tls {
		opts = append(opts, anser.TLS(serverTLS))
		dialTLS = append(dialTLS, anser.TLS(clientTLS))
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
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		for _, c := range g.good {
			c.Close()
		}
		if err := g.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	for range neighbours {
		// A dialer of its own gives each client its own connection.
		c, err := anser.Dial("tcp://127.0.0.1:1", append([]anser.DialOption{
			silent, anser.NoSnapshot(), anser.Conns(1), anser.Timeout(patience),
			anser.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, g.addr.Network(), g.addr.String())
			}),
		}, append(dialTLS, over.dial...)...)...)
		if err != nil {
			t.Fatal(err)
		}
		g.good = append(g.good, c)
	}
	g.others(t)
	return g
}

// others checks that the good connections answer.
func (g *target) others(t *testing.T) {
	t.Helper()
	var wg sync.WaitGroup
	for i, c := range g.good {
		wg.Go(func() {
			in := fmt.Appendf(nil, "hello %d", i)
			out, err := anser.Call[[]byte](context.Background(), c, "Good.Echo", &in, anser.Fail(anser.Failfast))
			if err != nil {
				t.Errorf("a good connection: %v", err)
			} else if string(*out) != string(in) {
				t.Errorf("a good connection: %q, want %q", *out, in)
			}
		})
	}
	wg.Wait()
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
		n := len(b)
		if n >= 64<<10 {
			n = bytewise
		}
		for i := range n {
			if _, err := nc.Write(b[i : i+1]); err != nil {
				return err
			}
		}
		if n == len(b) {
			return nil
		}
		_, err := nc.Write(b[n:])
		return err
	},
}

// follow does what comes after the bytes.
func (m manner) follow(nc net.Conn, gone <-chan struct{}) {
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
			case <-time.After(impatience / 2):
			}
			if _, err := nc.Write([]byte{0}); err != nil {
				return
			}
		}
	}
}

func TestBadClients(t *testing.T) {
	each(t, func(r row) bool { return r.instead != nil || r.send != nil }, func(t *testing.T, r row) {
		for _, over := range transports {
			t.Run(over.name, func(t *testing.T) {
				t.Parallel()
				var opts []anser.ServerOption
				if r.stall {
					opts = append(opts, anser.WriteStall(impatience), anser.HandshakeTimeout(2*impatience))
				}
				g := newTarget(t, over, opts...)
				for name, write := range manners {
					t.Run(name, func(t *testing.T) { g.attack(t, r.toServer, write) })
				}
			})
		}
	})
}

// answers is what a bad client has read.
type answers struct {
	frames []wirepeer.Frame
	err    error
}

// attack sends a row and checks what it leads to.
func (g *target) attack(t *testing.T, r toServer, write func(net.Conn, []byte) error) {
	if r.failing == 0 {
		r.failing = firstBadID
	}
	before := g.Stats()
	nc := g.connect(t)
	p := wirepeer.New(nc)
	out := make(chan answers, 1)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		a := answers{err: p.ReadPreface()}
		open := 1 // calls that have no answer yet
		failing := r.want.kind == fails || r.want.kind == breaks
		if failing {
			open++
		}
		for a.err == nil && open > 0 {
			var f wirepeer.Frame
			if f, a.err = p.Next(); a.err == nil {
				a.frames = append(a.frames, f)
				if f.ID == goodID || failing && f.ID == r.failing && f.Type != wire.TypeWindow {
					open--
				}
			}
		}
		out <- a
	}()
	b := r.instead
	if b == nil {
		b = wirepeer.Hello(wire.DefaultSettings())
		for i, name := range []string{"Bad.Bytes", "Bad.Struct", "Good.Echo", "Good.Wait", "Good.Slow", "Bad.Proto", "Bad.Self", "Bad.Only", "Good.Hold"} {
			b = wire.AppendMethod(b, uint32(i+1), name)
		}
		b = append(b, r.send...)
	}
	if r.want.kind == works || r.want.kind == fails || r.want.kind == breaks {
		b = append(b, wirepeer.Request(goodID, goodEcho, []byte("good"))...)
	}
	began := time.Now()
	if err := write(nc, b); err == nil { // else the server has closed already
		r.follow(nc, gone)
	}
	a := <-out
	if d := time.Since(began); d > bound {
		t.Errorf("it took %v", d)
	}
	nc.Close()
	r.check(t, a)
	g.others(t)
	if n := g.bad.Load(); n != 0 {
		t.Errorf("the handler ran %d times", n)
	}
	after := g.Stats()
	for end := time.Now().Add(bound); !r.want.counted(before, after); after = g.Stats() {
		if time.Now().After(end) {
			t.Fatalf("the counters were %+v and are %+v", before, after)
		}
		time.Sleep(time.Millisecond)
	}
	if after.Panics != 0 {
		t.Errorf("%d panics", after.Panics)
	}
}

// check compares what the server answered.
func (r toServer) check(t *testing.T, a answers) {
	t.Helper()
	w := r.want
	var reason *wire.Reason
	byID := make(map[uint64]wirepeer.Frame)
	for _, f := range a.frames {
		byID[f.ID] = f
		if f.Type == wire.TypeClose {
			got, text, err := wire.ParseClose(f.Body)
			if err != nil {
				t.Error(err)
			}
			t.Logf("%s: %s", got, text)
			reason = &got
		}
	}
	switch w.kind {
	case closes, refused, finishes:
		if reason == nil || *reason != w.reason {
			t.Fatalf("closed with %v, %v; want %s", reason, a.err, w.reason)
		}
		if w.kind == refused && len(a.frames) != 1 {
			t.Errorf("%d frames before the handshake was over", len(a.frames))
		}
		if f := byID[firstBadID]; w.kind == finishes && (f.Type != wire.TypeReply) {
			t.Errorf("the open call got %s", f.Type)
		}
		return
	case fails, breaks:
		f := byID[r.failing]
		if f.Type != wire.TypeError {
			t.Fatalf("the bad call got %s, %v", f.Type, a.err)
		}
		if e, err := wire.ParseError(f.Flags, f.Body); e.Code != w.code || e.Outcome != w.outcome || err != nil {
			t.Errorf("the bad call got %+v, %v; want %s", e, err, w.code)
		}
	}
	if f := byID[goodID]; f.Type != wire.TypeReply {
		t.Errorf("the good call of the connection got %s, %v, closed with %v", f.Type, a.err, reason)
	} else if r, err := wire.ParseReply(f.Flags, f.Body); string(r.Payload) != "good" || err != nil {
		t.Errorf("the good call of the connection got %q, %v", r.Payload, err)
	}
}

// counted reports whether the counters say what happened.
func (w want) counted(before, after anser.ServerStats) bool {
	name := w.reason.String()
	switch w.kind {
	case closes:
		return after.Closed[name] == before.Closed[name]+1
	case refused:
		return after.Closed[name] == before.Closed[name]+1 && after.HandshakeFailed == before.HandshakeFailed+1
	case fails:
		return after.Refused == before.Refused+1
	case breaks:
		// Good.Wait returns without an error.
		ran := func(s anser.ServerStats) int64 { return s.Methods["Good.Hold"].Failed + s.Methods["Good.Wait"].Calls }
		return ran(after) == ran(before)+1 && after.Streams == 0
	case finishes:
		return after.Methods["Good.Slow"].Calls == before.Methods["Good.Slow"].Calls+1
	}
	return true
}

func TestBadServers(t *testing.T) {
	each(t, func(r row) bool { return r.hello != nil || r.reply != nil }, func(t *testing.T, r row) {
		for name, write := range manners {
			t.Run("tcp/"+name, func(t *testing.T) {
				t.Parallel()
				deceive(t, r.toClient, write)
			})
		}
	})
}

// deceive has a client call a server that is bad at first.
func deceive(t *testing.T, r toClient, write func(net.Conn, []byte) error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var healed atomic.Bool
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				nc.SetDeadline(time.Now().Add(2 * bound))
				r.serve(nc, write, &healed, stop)
			})
		}
	})
	opts := []anser.DialOption{silent, anser.NoSnapshot(), anser.Conns(1), anser.Timeout(2 * time.Second)}
	if r.how.stall {
		opts = append(opts, anser.WriteStall(impatience), anser.HandshakeTimeout(2*impatience))
	}
	if r.compressor != nil {
		opts = append(opts, anser.Compress(r.compressor))
	}
	c, err := anser.Dial(l.Addr().String(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		l.Close()
		close(stop)
		wg.Wait()
	})
	began := time.Now()
	if as := map[uint8]codec.Codec{3: protobuf.NewJSON(), 5: msgpack.New()}[r.codec]; as != nil {
		_, err = anser.Call[message](context.Background(), c, "Good.Echo", new(message), anser.Fail(anser.Failfast), anser.Codec(as))
	} else if r.opens {
		err = converse(c)
	} else {
		err = ask(t, c)
	}
	if (err == nil) != r.good {
		t.Errorf("the call: %v, want it to fail: %t", err, !r.good)
	} else {
		t.Log(err)
	}
	if d := time.Since(began); d > bound {
		t.Errorf("the call took %v", d)
	}
	healed.Store(true)
	for end := time.Now().Add(bound); ; time.Sleep(20 * time.Millisecond) {
		if err = ask(t, c); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the server is good now, but: %v", err)
		}
	}
}

// ask makes a call whose right reply is "ok".
func ask(t *testing.T, c *anser.Client) error {
	t.Helper()
	in := []byte("hello")
	out, err := anser.Call[[]byte](context.Background(), c, "Good.Echo", &in, anser.Fail(anser.Failfast))
	if err == nil && string(*out) != "ok" {
		t.Errorf("the reply is %q without an error", *out)
	}
	return err
}

// converse opens a stream and receives until its end.
func converse(c *anser.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	st, err := anser.Open[[]byte, []byte](ctx, c, "Good.Hold", anser.Fail(anser.Failfast))
	if err != nil {
		return err
	}
	for _, err := range st.All() {
		if err != nil {
			return err
		}
	}
	return nil
}

// serve is one connection of a server that is bad until it has healed.
func (r toClient) serve(nc net.Conn, write func(net.Conn, []byte) error, healed *atomic.Bool, stop chan struct{}) {
	p := wirepeer.New(nc)
	if r.hello != nil && !healed.Load() {
		if write(nc, r.hello()) == nil {
			r.how.follow(nc, stop)
		}
		io.Copy(io.Discard, nc)
		return
	}
	if p.Send(r.settings()) != nil {
		return
	}
	if _, err := p.ReadHello(); err != nil {
		return
	}
	for {
		f, err := p.NextOf(wire.TypeRequest)
		if err != nil {
			return
		}
		if r.reply == nil || healed.Load() {
			p.Send(wirepeer.Reply(f.ID, []byte("ok")))
			continue
		}
		if write(nc, r.reply(f.ID)) == nil {
			r.how.follow(nc, stop)
		}
	}
}
