package badinput_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/internal/testusage"
	"github.com/anser-rpc/anser/protocols"
)

const (
	bound      = 2 * time.Minute // timeout of all operations, on a busy machine too
	neighbours = 8               // good connections next to the bad one
	maxMessage = 1 << 20
	maxMemory  = 8 << 20
)

// rowsHeld has the numbers of the rows, and whether all their parts have passed.
var rowsHeld = struct {
	sync.Mutex
	held map[int]bool
}{held: make(map[int]bool)}

func TestMain(m *testing.M) {
	flag.Parse()
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil { // the poller has descriptors of its own
		l.Close()
	}
	before := testusage.Measure()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := before.Compare(); err != nil {
			fmt.Println(err)
			code = 1
		}
		n := 0
		for _, ok := range rowsHeld.held {
			if ok {
				n++
			}
		}
		fmt.Printf("%d rows, %d held\n", len(rowsHeld.held), n)
		os.Exit(code)
	}))
}

// target is a server of all protocols with good clients.
type target struct {
	*anser.Server
	address string
	token   string       // that a caller needs, or ""
	bad     atomic.Int64 // runs of handlers that must not run
	good    []func(context.Context) error
	pause   time.Duration // of the good clients after each call
	closers []func()
	served  chan error
}

func newTarget(t *testing.T, r *row) *target {
	t.Helper()
	g := &target{served: make(chan error, 1), pause: time.Millisecond}
	if r.slow {
		g.pause = 30 * time.Millisecond // they wait for a long time
	}
	opts := []anser.ServerOption{
		protocols.All(), anser.NoSignals(), anser.Logger(slog.New(slog.DiscardHandler)), anser.MaxMessage(maxMessage), anser.MaxMemory(maxMemory),
		anser.HandshakeTimeout(bound),
	}
	if r.auth {
		g.token = auth.NewToken()
		tokens, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest(g.token)})
		if err != nil {
			t.Fatal(err)
		}
		opts = append(opts, anser.Authenticate(tokens))
	}
	g.Server = anser.NewServer(append(opts, r.options...)...)
	echo := func(_ context.Context, in *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) { return in, nil }
	anser.Handle(g.Server, "test.Good.Echo", echo)
	anser.Handle(g.Server, "test.Good.Large", func(context.Context, *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
		return wrapperspb.Bytes(make([]byte, 256<<10)), nil
	})
	anser.HandleStream(g.Server, "test.Good.Take", func(_ context.Context, st *anser.Stream[wrapperspb.BytesValue, wrapperspb.BytesValue]) error {
		for {
			if _, err := st.Recv(); err != nil {
				return err
			}
		}
	})
	anser.HandleStream(g.Server, "test.Good.Hold", func(ctx context.Context, _ *anser.Stream[wrapperspb.BytesValue, wrapperspb.BytesValue]) error {
		<-ctx.Done()
		return ctx.Err()
	})
	anser.Handle(g.Server, "test.Bad.Run", func(_ context.Context, in *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
		g.bad.Add(1)
		return in, nil
	})
	anser.HandleStream(g.Server, "test.Bad.Chat", func(context.Context, *anser.Stream[wrapperspb.BytesValue, wrapperspb.BytesValue]) error {
		g.bad.Add(1)
		return nil
	})
	anser.Handle(g.Server, "Bad.Plain", func(_ context.Context, in *map[string]any) (*map[string]any, error) {
		g.bad.Add(1)
		return in, nil
	})
	l, err := g.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.address = l.Addr().String()
	go func() { g.served <- g.Serve(l) }()
	for i := range neighbours {
		g.addGood(t, i)
	}
	return g
}

// addGood adds a client with a connection of its own: Anser, gRPC, and HTTP of both versions.
func (g *target) addGood(t *testing.T, i int) {
	t.Helper()
	in := wrapperspb.Bytes([]byte{byte(i)})
	switch i % 4 {
	case 0:
		opts := []anser.DialOption{anser.Logger(slog.New(slog.DiscardHandler)), anser.NoSnapshot(), anser.Conns(1)}
		if g.token != "" {
			opts = append(opts, auth.Token(g.token))
		}
		c, err := anser.Dial(g.address, opts...)
		if err != nil {
			t.Fatal(err)
		}
		g.closers = append(g.closers, func() { c.Close() })
		g.good = append(g.good, func(ctx context.Context) error {
			_, err := anser.Call[wrapperspb.BytesValue](ctx, c, "test.Good.Echo", in)
			return err
		})
	case 1:
		conn, err := grpc.NewClient(g.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		g.closers = append(g.closers, func() { conn.Close() })
		g.good = append(g.good, func(ctx context.Context) error {
			return conn.Invoke(bearer(ctx, g.token), "/test.Good/Echo", in, new(wrapperspb.BytesValue))
		})
	default:
		tr := &http.Transport{Protocols: new(http.Protocols), MaxConnsPerHost: 1}
		tr.Protocols.SetHTTP1(i%4 == 2)
		tr.Protocols.SetUnencryptedHTTP2(i%4 == 3)
		g.closers = append(g.closers, tr.CloseIdleConnections)
		g.good = append(g.good, func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, "POST", "http://"+g.address+"/test.Good.Echo", strings.NewReader(`"AQ=="`))
			if err != nil {
				return err
			}
			r.Header.Set("Content-Type", "application/json")
			if g.token != "" {
				r.Header.Set("Authorization", "Bearer "+g.token)
			}
			resp, err := tr.RoundTrip(r)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if b, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || err != nil {
				return fmt.Errorf("%d %s, %v", resp.StatusCode, b, err)
			}
			return nil
		})
	}
}

// work makes the good clients call until rest is called; none of their calls may fail.
func (g *target) work(t *testing.T) (rest func()) {
	t.Helper()
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i, call := range g.good {
		running.Go(func() {
			for n, over := 0, false; n < 8 || !over; n++ {
				ctx, cancel := context.WithTimeout(context.Background(), bound)
				err := call(ctx)
				cancel()
				if err != nil {
					t.Errorf("good client %d: %v", i, err)
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
	return func() {
		close(stop)
		running.Wait()
	}
}

func (g *target) stop(t *testing.T) {
	t.Helper()
	for _, end := range g.closers {
		end()
	}
	if err := g.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-g.served; !errors.Is(err, anser.ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
}

// TestRows sends each row in one write, and its first bytes one by one.
func TestRows(t *testing.T) {
	for _, r := range rows() {
		t.Run(fmt.Sprintf("row%d/%s", r.number, r.name), func(t *testing.T) {
			if r.slow && testing.Short() {
				t.Skip("waits for a time limit")
			}
			tooSlow := false
			t.Cleanup(func() {
				if tooSlow && !t.Failed() {
					return
				}
				rowsHeld.Lock()
				defer rowsHeld.Unlock()
				before, seen := rowsHeld.held[r.number]
				rowsHeld.held[r.number] = !t.Failed() && (before || !seen)
			})
			testusage.Leaves(t, func() { tooSlow = r.run(t) })
		})
	}
}

// run plays a row against a server of its own. tooSlow says that the machine is too slow for it.
func (r *row) run(t *testing.T) (tooSlow bool) {
	g := newTarget(t, r)
	defer g.stop(t)
	for _, call := range g.good { // so that all connections are there
		if err := call(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, bytewise := range []bool{false, true} {
		if bytewise && (r.slow || tooSlow) {
			continue
		}
		before, resting := g.Stats(), testusage.Measure()
		rest := g.work(t)
		got, release := r.attack(t, g, bytewise)
		tooSlow = got.slow && !got.closed
		if tooSlow {
			t.Log("this machine is too slow for a flood")
		} else if !r.want.matches(got) {
			t.Errorf("bytewise %v: the client sees %+v, want %+v", bytewise, got, r.want)
		}
		rest()
		// The bad connection is still open.
		if !testusage.Soon(func() bool {
			testusage.Measure()
			return testusage.Now().Heap-resting.Heap <= testusage.HeapGrowth+g.Stats().Memory
		}) {
			t.Errorf("the heap has grown by %d KiB", (testusage.Now().Heap-resting.Heap)>>10)
		}
		release()
		counted := func() bool { return tooSlow || r.counted == nil || r.counted(before, g.Stats()) }
		if !testusage.Soon(counted) {
			t.Errorf("the counters were %+v and are %+v", before, g.Stats())
		}
		if !testusage.Soon(func() bool { return g.Stats().Memory == 0 && g.Stats().InFlight == 0 }) {
			t.Errorf("%d bytes and %d calls are still held", g.Stats().Memory, g.Stats().InFlight)
		}
		if n := g.bad.Load(); n != 0 {
			t.Errorf("a method that must not run has run %d times", n)
		}
		if n := g.Stats().Panics; n != 0 {
			t.Errorf("%d panics", n)
		}
	}
	return tooSlow
}
