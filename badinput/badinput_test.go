package badinput_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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
	"github.com/anser-rpc/anser/internal/authority"
	"github.com/anser-rpc/anser/internal/benchpb"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

const (
	bound      = 30 * time.Second // within which everything has to happen, on a busy machine too
	patience   = 5 * time.Second  // of a call to a bad server
	impatience = 300 * time.Millisecond
	neighbours = 8       // good connections beside the bad one
	bytewise   = 1 << 10 // so many bytes at the beginning of a row, and at its end, are sent one by one
	heapGrowth = 8 << 20
)

// table is what rows returns, made once: it is as large as what it sends.
var table []row

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // unless the command line says otherwise: those rows wait that run in parallel
	table = rows()
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil { // the poller has descriptors of its own
		l.Close()
	}
	before := measure()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		// Only now does package testing let go of what the tests had.
		if err := before.compare(); err != nil {
			fmt.Println(err)
			code = 1
		}
		fmt.Print(beside.String())
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

// each runs f for the rows that are tried: one after the other, or with parallel at the same time.
func each(t *testing.T, parallel bool, tried func(row) bool, f func(t *testing.T, r row)) {
	seen := make(map[int]int)
	for _, r := range table {
		name := fmt.Sprintf("row%02d", r.number)
		if n := seen[r.number]; n > 0 {
			name += suffix(n)
		}
		seen[r.number]++
		if !tried(r) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if parallel {
				t.Parallel()
			}
			t.Log(r.name, r.note)
			held.note(t, r.number)
			f(t, r)
		})
	}
}

// suffix returns b, c, …, z, ba, bb, … for 1, 2, …
func suffix(n int) string {
	s := ""
	for ; n > 0; n /= 26 {
		s = string(rune('a'+n%26)) + s
	}
	return s
}

// usage is what the process holds.
type usage struct {
	heap       int64
	fds        int
	goroutines int // without those of tests, and the idle workers of servers, which are kept for a while
}

// measure collects garbage first: pools give up what they hold in two steps.
func measure() usage {
	for range 3 {
		runtime.GC()
	}
	return holds()
}

// holds is measure without the collections.
func holds() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{heap: int64(m.HeapAlloc)}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil { // Linux
		u.fds = len(list)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		idle := bytes.Contains(stack, []byte("anser.(*workers).work(")) && !bytes.Contains(stack, []byte("anser.(*serverConn).runJob("))
		if !idle && !bytes.Contains(stack, []byte("testing.tRunner(")) {
			u.goroutines++
		}
	}
	return u
}

// compare waits until the process holds no more than it did, and says what it holds otherwise.
func (u usage) compare() error {
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		runtime.GC() // one is enough most of the time, and all others follow soon
		now := holds()
		if now.fds <= u.fds && now.goroutines <= u.goroutines && now.heap-u.heap <= heapGrowth {
			return nil
		}
		if time.Since(began) > bound {
			return fmt.Errorf("%d KiB of heap, %d file descriptors and %d goroutines are left, before %d KiB, %d and %d",
				now.heap>>10, now.fds, now.goroutines, u.heap>>10, u.fds, u.goroutines)
		}
		time.Sleep(pause)
	}
}

// leaves checks that f leaves nothing behind.
func leaves(t *testing.T, f func()) {
	t.Helper()
	before := measure()
	f()
	if err := before.compare(); err != nil {
		t.Error(err)
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
	a := authority.New("bad input")
	return &tls.Config{Certificates: []tls.Certificate{a.Issue()}, MinVersion: tls.VersionTLS13},
		&tls.Config{RootCAs: a.Pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
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

	served  chan error // what Serve returned
	stopped bool

	before usage // by everything, at rest
	// How long calls of the good connections take.
	atRest, besides []time.Duration
	worst           time.Duration
	worstOf         string
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

// stop closes the clients and the server; again it does nothing.
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

// latencies collects how long calls of the good connections took, at rest and beside bad ones.
type latencies struct {
	mu    sync.Mutex
	lines []string
}

var beside latencies

func (l *latencies) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.lines)
	return strings.Join(l.lines, "")
}

// tell enters the summary of a server; worstOf is "" where rows are sent at the same time.
func (l *latencies) tell(name string, rest, bad []time.Duration, worst time.Duration, worstOf string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := fmt.Sprintf("others over %s: p99 %v at rest, %v beside bad input", name, p99(rest), p99(bad))
	if worstOf != "" {
		line += fmt.Sprintf("; the worst row is %s with %v", worstOf, worst)
	}
	l.lines = append(l.lines, line+"\n")
}

func p99(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[min(len(d)*99/100, len(d)-1)].Round(time.Microsecond)
}

// leastCalls is how many calls each good connection makes beside a row, however short it is.
const leastCalls = 16

// work has the good connections make calls until they are told to rest, and returns how long those took.
func (g *target) work(t *testing.T) (rest func() []time.Duration) {
	t.Helper()
	stop := make(chan struct{})
	took := make([][]time.Duration, len(g.good))
	var wg sync.WaitGroup
	for i, c := range g.good {
		wg.Go(func() {
			in := fmt.Appendf(nil, "hello %d", i)
			for n := 0; ; n++ {
				select {
				case <-stop:
					if n >= leastCalls {
						return
					}
				default:
				}
				began := time.Now()
				out, err := anser.Call[[]byte](context.Background(), c, "Good.Echo", &in, anser.Fail(anser.Failfast))
				took[i] = append(took[i], time.Since(began))
				if err != nil || string(*out) != string(in) {
					t.Errorf("a good connection: %v, %v", out, err)
					return
				}
				time.Sleep(200 * time.Microsecond)
			}
		})
	}
	return func() []time.Duration {
		close(stop)
		wg.Wait()
		return slices.Concat(took...)
	}
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
		// The first bytes and the last ones; all of them would take the time of many system calls.
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

func TestBadClients(t *testing.T) {
	toServer := func(r row) bool { return r.instead != nil || r.send != nil }
	for _, over := range transports {
		t.Run(over.name, func(t *testing.T) {
			leaves(t, func() {
				// One after the other, so that what is measured is that of one row.
				t.Run("quick", func(t *testing.T) {
					g := newTarget(t, over)
					g.settle(t)
					each(t, false, func(r row) bool { return toServer(r) && !r.toServer.stall }, func(t *testing.T, r row) {
						for name, write := range manners {
							t.Run(name, func(t *testing.T) { g.alone(t, r.toServer, write) })
						}
					})
					beside.tell(over.name, g.atRest, g.besides, g.worst, g.worstOf)
				})
				// Those in which nothing happens for a while wait together.
				t.Run("stalled", func(t *testing.T) {
					each(t, true, func(r row) bool { return toServer(r) && r.toServer.stall }, func(t *testing.T, r row) {
						g := newTarget(t, over, anser.WriteStall(impatience), anser.HandshakeTimeout(2*impatience))
						for name, write := range manners {
							t.Run(name, func(t *testing.T) {
								rest := g.work(t)
								g.attack(t, r.toServer, write, func() {})
								t.Logf("p99 of the others: %v", p99(rest()))
							})
						}
					})
				})
			})
		})
	}
}

// settle has everything been used once that a server keeps, and measures the others at rest.
func (g *target) settle(t *testing.T) {
	t.Helper()
	for range 2 {
		rest := g.work(t)
		time.Sleep(impatience)
		g.atRest = rest()
	}
	g.before = measure()
}

// alone sends a row while nothing else happens but the work of the good connections, and checks what every row has in
// common.
func (g *target) alone(t *testing.T, r toServer, write func(net.Conn, []byte) error) {
	before := g.before // of the first row: so they leave nothing together, too
	rest := g.work(t)
	g.attack(t, r, write, func() {
		// What a connection holds that is still there.
		for end := time.Now().Add(bound); ; {
			runtime.GC()
			growth := holds().heap - before.heap
			if growth <= heapGrowth {
				return
			}
			if time.Now().After(end) {
				t.Errorf("the heap has grown by %d KiB, the limit is %d", growth>>10, heapGrowth>>10)
				return
			}
		}
	})
	took := rest()
	g.besides = append(g.besides, took...)
	if p := p99(took); p > g.worst {
		g.worst, g.worstOf = p, strings.TrimPrefix(t.Name(), "TestBadClients/"+g.name+"/quick/")
	}
	t.Logf("p99 of the others: %v, at rest %v", p99(took), p99(g.atRest))
	if err := before.compare(); err != nil {
		t.Error(err)
	}
}

// answers is what a bad client has read.
type answers struct {
	frames []wirepeer.Frame
	err    error
}

// attack sends a row and checks what it leads to. It calls look when the row is over, before its connection is.
func (g *target) attack(t *testing.T, r toServer, write func(net.Conn, []byte) error, look func()) {
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
	t.Logf("it took %v", time.Since(began).Round(time.Microsecond))
	r.check(t, a)
	p = nil
	look()
	nc.Close()
	g.others(t)
	if n := g.bad.Load(); n != 0 {
		t.Errorf("the handler ran %d times", n)
	}
	after := g.Stats()
	for end := time.Now().Add(bound); !r.want.counted(before, after); after = g.Stats() {
		if time.Now().After(end) {
			t.Fatalf("%s: the counters were %+v and are %+v", r.want.counter(), before, after)
		}
		time.Sleep(time.Millisecond)
	}
	t.Log("counted by", r.want.counter())
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

// counter says what counts the row.
func (w want) counter() string {
	switch w.kind {
	case closes:
		return "Closed[" + w.reason.String() + "]"
	case refused:
		return "HandshakeFailed and Closed[" + w.reason.String() + "]"
	case fails:
		return "Refused"
	case breaks:
		return "Methods[…].Failed"
	case finishes:
		return "Methods[…].Calls"
	}
	return "nothing: it is good"
}

func TestBadServers(t *testing.T) {
	for _, over := range transports {
		t.Run(over.name, func(t *testing.T) {
			leaves(t, func() {
				g := newTarget(t, over)
				g.settle(t)
				rest := g.work(t)
				t.Run("rows", func(t *testing.T) {
					each(t, true, func(r row) bool { return r.hello != nil || r.reply != nil }, func(t *testing.T, r row) {
						for name, write := range manners {
							t.Run(name, func(t *testing.T) { deceive(t, over, r.toClient, write) })
						}
					})
				})
				beside.tell(over.name+", bad servers", g.atRest, rest(), 0, "")
				g.stop(t)
			})
		})
	}
}

// heard is what the observer of a client is told of the ends of connections.
type heard struct {
	mu   sync.Mutex
	ends []error
}

func (h *heard) note(_ anser.ConnInfo, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.ends = append(h.ends, err)
	}
}

// of returns how many connections ended, or did not begin, for the reason.
func (h *heard) of(r wire.Reason) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, err := range h.ends {
		if broken, ok := errors.AsType[*wire.Error](err); ok && broken.Reason == r {
			n++
		}
	}
	return n
}

// deceive has a client call a server that is bad at first.
func deceive(t *testing.T, over transport, r toClient, write func(net.Conn, []byte) error) {
	network, address, _ := strings.Cut(over.address(t), "://")
	if address == "" {
		network, address = "tcp", network
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	target := l.Addr()
	serverTLS, clientTLS := identity()
	if over.tls {
		l = tls.NewListener(l, serverTLS)
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
	ends := new(heard)
	opts := []anser.DialOption{
		silent, anser.NoSnapshot(), anser.Conns(1), anser.Timeout(patience), anser.Observe(anser.Observer{ConnClosed: ends.note, ConnFailed: ends.note}),
		anser.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, target.Network(), target.String())
		}),
	}
	if over.tls {
		opts = append(opts, anser.TLS(clientTLS))
	}
	if r.how.stall {
		opts = append(opts, anser.WriteStall(impatience), anser.HandshakeTimeout(2*impatience))
	}
	if r.compressor != nil {
		opts = append(opts, anser.Compress(r.compressor))
	}
	c, err := anser.Dial("tcp://127.0.0.1:1", opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		c.Close()
		l.Close()
		close(stop)
		wg.Wait()
	}()
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
	for end := time.Now().Add(bound); r.why != 0 && ends.of(r.why) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("connections ended with %v, want %s", ends.ends, r.why)
		}
	}
	if r.why != 0 {
		t.Log("counted by the observer's ConnClosed or ConnFailed:", r.why)
	}
	healed.Store(true)
	for end := time.Now().Add(bound); ; time.Sleep(5 * time.Millisecond) {
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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
