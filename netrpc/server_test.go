package netrpc_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/gob"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	stock "net/rpc"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// insecure is for servers whose certificate does not matter.
var insecure = &tls.Config{InsecureSkipVerify: true}

// Odd is a service with misbehaving methods.
type Odd struct{}

// Silent fails with an empty text.
func (Odd) Silent(*Args, *Reply) error { return errors.New("") }

// Nothing returns nothing.
func (Odd) Nothing(context.Context, *Args) (*Reply, error) { return nil, nil }

// Exit ends its goroutine.
func (Odd) Exit(*Args, *Reply) error {
	runtime.Goexit()
	return nil
}

type badError struct{}

func (*badError) Error() string { panic("no text either") }

// BadError returns an error that panics.
func (Odd) BadError(*Args, *Reply) error { return (*badError)(nil) }

// Moody is a message that panics if its mood says so.
type Moody struct{ Mood string }

// GobEncode writes the mood.
func (m Moody) GobEncode() ([]byte, error) {
	switch m.Mood {
	case "encode":
		panic("a secret")
	case "refuse":
		return nil, errors.New("not today")
	}
	return []byte(m.Mood), nil
}

// GobDecode reads it.
func (m *Moody) GobDecode(b []byte) error {
	if m.Mood = string(b); m.Mood == "decode" {
		panic("a secret")
	}
	return nil
}

// MarshalJSON writes the mood.
func (m Moody) MarshalJSON() ([]byte, error) {
	b, err := m.GobEncode()
	return []byte(`"` + string(b) + `"`), err
}

// UnmarshalJSON reads it.
func (m *Moody) UnmarshalJSON(b []byte) error { return m.GobDecode(bytes.Trim(b, `"`)) }

// Echo returns its argument.
func (Odd) Echo(in *Moody, out *Moody) error {
	*out = *in
	return nil
}

// Become returns a mood.
func (Odd) Become(mood string, out *Moody) error {
	out.Mood = mood
	return nil
}

// A failure in a method or in a message fails only its call, and the caller learns no internal
// details. In net/rpc most of these end the process or the connection.
func TestFailuresStayWithTheirCall(t *testing.T) {
	var logged testlog.Buffer // why a reply could not be encoded is logged after the caller has received its error
	for name, wire := range map[string]struct {
		codec func(io.ReadWriteCloser) netrpc.ServerCodec
		dial  func(network, address string) (*netrpc.Client, error)
	}{
		"gob": {nil, netrpc.Dial}, "JSON": {jsonrpc.NewServerCodec, jsonrpc.Dial}, "JSON 2": {jsonrpc.NewServerCodec, jsonrpc.Dial2},
	} {
		t.Run(name, func(t *testing.T) {
			logged.Take()
			s := quiet(new(Arith), Odd{})
			s.Logger = logged.Logger()
			c, err := wire.dial("tcp", serve(t, s, wire.codec))
			client(t, c, err)
			for _, call := range []struct {
				method string
				in     any
				want   string
			}{
				{"Arith.Panic", &Args{}, "the handler panicked; the server's log has the details under id"},
				{"Odd.Silent", &Args{}, "without saying why"},
				{"Odd.Nothing", &Args{}, "neither a reply nor an error"},
				{"Odd.Exit", &Args{}, "ended its goroutine"},
				{"Odd.BadError", &Args{}, "panicked"},
				{"Odd.Become", "encode", "cannot encode the reply"},
				{"Odd.Become", "refuse", "cannot encode the reply"},
				{"Odd.Become", "decode", "panicked"}, // on this side
				{"Odd.Echo", &Moody{"decode"}, "decoding the request panicked"},
				{"Odd.Echo", &Moody{"encode"}, "panicked"}, // on this side
				{"Odd.Echo", &Moody{"refuse"}, "not today"},
				{"Odd.Echo", make(chan int), ""},
				{"Odd.Echo", (*Moody)(nil), ""},
			} {
				var reply any = new(Moody)
				if strings.HasPrefix(call.method, "Arith.") {
					reply = new(Reply)
				}
				err := c.Call(call.method, call.in, reply)
				if call.in == any((*Moody)(nil)) && name != "gob" {
					continue // null is valid JSON
				}
				if err == nil || !strings.Contains(err.Error(), call.want) {
					t.Errorf("%s(%v): %v, want %q", call.method, call.in, err, call.want)
				}
				if err != nil && strings.Contains(err.Error(), "a secret") && strings.Contains(err.Error(), "server") {
					t.Errorf("the caller learns %q", err)
				}
				mustAdd(t, c)
			}
			if got := s.Stats().Panics; got < 2 {
				t.Errorf("%d panics are counted", got)
			}
			if !strings.Contains(logged.String(), "a secret") {
				t.Errorf("the log has no details:\n%s", logged.String())
			}
		})
	}
}

func TestContextEndsWithTheConnection(t *testing.T) {
	for name, codec := range map[string]func(io.ReadWriteCloser) netrpc.ServerCodec{"gob": nil, "JSON": jsonrpc.NewServerCodec} {
		w := newWaits()
		addr := serve(t, quiet(w), codec)
		c, err := netrpc.Dial("tcp", addr)
		if codec != nil {
			c, err = jsonrpc.Dial("tcp", addr)
		}
		if err != nil {
			t.Fatal(err)
		}
		call := c.Go("Waits.Stubborn", &Args{}, new(Reply), nil)
		ctx := <-w.entered
		if err := ctx.Err(); err != nil {
			t.Errorf("%s: the context begins with %v", name, err)
		}
		c.Close()
		<-ctx.Done()
		if err := (<-call.Done).Error; err != netrpc.ErrShutdown {
			t.Errorf("%s: the call ends with %v", name, err)
		}
		close(w.release)
	}
}

func TestContextEndsWithTheMethod(t *testing.T) {
	w := newWaits()
	close(w.release)
	c := dial(t, serve(t, quiet(w), nil))
	if err := c.Call("Waits.Here", &Args{}, new(Reply)); err != nil {
		t.Fatal(err)
	}
	<-(<-w.entered).Done()
}

// A client that has sent all of its requests may close its side and wait.
func TestHalfClose(t *testing.T) {
	for _, half := range []bool{true, false} {
		w := newWaits()
		s := quiet(w)
		s.HalfClose = half
		conn, err := net.Dial("tcp", serve(t, s, jsonrpc.NewServerCodec))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, `{"method":"Waits.Here","params":[{}],"id":1}`)
		conn.(*net.TCPConn).CloseWrite()
		ctx := <-w.entered
		if half {
			close(w.release)
		} else {
			<-ctx.Done()
		}
		got, err := io.ReadAll(conn)
		want := `"error":"context canceled"`
		if half {
			want = `"result":{"C":1}`
		}
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("HalfClose is %v: %s, %v, want %s", half, got, err, want)
		}
	}
}

func TestMaxInFlight(t *testing.T) {
	w := newWaits()
	s := quiet(w, new(Arith))
	s.MaxInFlight = 2
	addr := serve(t, s, nil)
	a, b := dial(t, addr), dial(t, addr)
	calls := []*netrpc.Call{a.Go("Waits.Here", &Args{}, new(Reply), nil), b.Go("Waits.Here", &Args{}, new(Reply), nil)}
	<-w.entered
	<-w.entered
	err := a.Call("Arith.Add", Args{1, 2}, new(Reply))
	if err == nil || !strings.Contains(err.Error(), "MaxInFlight") {
		t.Errorf("one more: %v", err)
	}
	if st := s.Stats(); st.InFlight != 2 || st.Refused != 1 || st.Conns != 2 {
		t.Errorf("counted are %+v", st)
	}
	close(w.release)
	for _, call := range calls {
		if err := (<-call.Done).Error; err != nil {
			t.Error(err)
		}
	}
	mustAdd(t, a)
}

// Calls above the limit of their connection wait, and none is lost.
func TestMaxPerConn(t *testing.T) {
	var running, most atomic.Int64
	s := quiet()
	s.MaxPerConn = 3
	s.RegisterFunc("Peak", func(_ *Args, reply *Reply) error {
		n := running.Add(1)
		defer running.Add(-1)
		for {
			old := most.Load()
			if n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		runtime.Gosched()
		return nil
	})
	c := dial(t, serve(t, s, nil))
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if err := c.Call("Peak", &Args{}, new(Reply)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := most.Load(); got > 3 {
		t.Errorf("%d calls ran at once: want 3 at most", got)
	}
}

// However many calls wait for their turn, the end of their connection is noticed.
func TestLossIsNoticedWhileCallsWait(t *testing.T) {
	w := newWaits()
	s := quiet(w)
	s.MaxPerConn = 2
	addr := serve(t, s, nil)
	c, err := netrpc.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		c.Go("Waits.Here", &Args{}, new(Reply), nil)
	}
	contexts := []context.Context{<-w.entered, <-w.entered}
	for s.Stats().InFlight < 50 {
		runtime.Gosched()
	}
	c.Close()
	for _, ctx := range contexts {
		<-ctx.Done()
	}
	for s.Stats().InFlight > 0 {
		runtime.Gosched()
	}
	if n := len(w.entered); n > 0 {
		t.Errorf("%d of the calls that waited have run", n)
	}
	if got := s.Stats().Refused; got != 48 {
		t.Errorf("%d calls are counted as refused: want 48", got)
	}
}

func TestMaxConns(t *testing.T) {
	s := quiet(new(Arith))
	s.MaxConns = 1
	addr := serve(t, s, nil)
	first := dial(t, addr)
	mustAdd(t, first)
	second := dial(t, addr)
	if err := second.Call("Arith.Add", Args{1, 2}, new(Reply)); err == nil {
		t.Error("a second connection is served")
	}
	mustAdd(t, first)
	if got := s.Stats().RefusedConns; got != 1 {
		t.Errorf("%d refused connections are counted", got)
	}
}

func TestShutdownDrains(t *testing.T) {
	w := newWaits()
	s := quiet(w, new(Arith))
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, nil) }()
	// One net/rpc client with a call in flight, an idle one, and one over HTTP.
	busy, err := stock.Dial("tcp", l.Addr().String())
	client(t, busy, err)
	idle := dial(t, l.Addr().String())
	mustAdd(t, idle)
	web, err := netrpc.DialHTTP("tcp", serveHTTP(t, s))
	client(t, web, err)
	calls := []*stock.Call{
		busy.Go("Waits.Here", &Args{}, new(Reply), nil), busy.Go("Waits.Stubborn", &Args{}, new(Reply), nil),
		web.Go("Waits.Here", &Args{}, new(Reply), nil),
	}
	for range calls {
		<-w.entered
	}
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(t.Context()) }()
	if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
	// Later requests are rejected with an error.
	for {
		err := busy.Call("Arith.Add", Args{1, 2}, new(Reply))
		if err != nil {
			if !strings.Contains(err.Error(), "shutting down") {
				t.Errorf("a late call: %v", err)
			}
			break
		}
	}
	select {
	case err := <-down:
		t.Fatalf("Shutdown returns %v while calls are in flight", err)
	default:
	}
	close(w.release)
	for _, call := range calls {
		if err := (<-call.Done).Error; err != nil || call.Reply.(*Reply).C != 1 {
			t.Errorf("a call in flight: %v, %v", call.Reply, err)
		}
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := s.Serve(listen(t), nil); !errors.Is(err, anser.ErrServerClosed) {
		t.Errorf("Serve after Shutdown: %v", err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("a second Shutdown: %v", err)
	}
	one, two := net.Pipe()
	go s.ServeConn(one)
	if _, err := two.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a connection after Shutdown: %v, want that it is closed", err)
	}
}

func TestShutdownRunsOutOfTime(t *testing.T) {
	w := newWaits()
	s := quiet(w)
	c := dial(t, serve(t, s, nil))
	call := c.Go("Waits.Here", &Args{}, new(Reply), nil)
	<-w.entered
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v, want that the deadline is exceeded", err)
	}
	if err := (<-call.Done).Error; err == nil {
		t.Error("the call succeeds")
	}
}

// Nap is a service whose method ignores its context.
type Nap struct {
	lasts time.Duration
	began chan struct{}
}

func (n Nap) Take(_ *Args, _ *Reply) error {
	close(n.began)
	time.Sleep(n.lasts)
	return nil
}

// The context of Shutdown bounds how long it waits, for methods whose callers are waiting and for
// methods whose callers have disconnected.
func TestShutdownIsBoundByItsContext(t *testing.T) {
	const overtime = 100 * time.Millisecond
	for _, gone := range []bool{false, true} {
		for _, bound := range []time.Duration{0, 100 * time.Millisecond, 3 * time.Second} {
			for _, lasts := range []time.Duration{time.Hour, 2 * time.Second} {
				synctest.Test(t, func(t *testing.T) {
					nap := Nap{lasts, make(chan struct{})}
					s := quiet(nap)
					one, two := net.Pipe()
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						s.ServeConn(one)
					}()
					c := netrpc.NewClient(two)
					c.Go("Nap.Take", &Args{}, new(Reply), nil)
					<-nap.began
					if gone {
						c.Close()
						synctest.Wait()
					}
					ctx, cancel := context.WithTimeout(t.Context(), bound)
					defer cancel()
					began := time.Now()
					err := s.Shutdown(ctx)
					d := time.Since(began)
					switch {
					case lasts < bound && (err != nil || d >= bound):
						t.Errorf("callers gone %v: %v after %v for a call of %v", gone, err, d, lasts)
					case lasts > bound && (!errors.Is(err, context.DeadlineExceeded) || d < bound || d > bound+overtime):
						t.Errorf("callers gone %v: %v after %v, want %v and at most %v more", gone, err, d, bound, overtime)
					}
					<-ended
					c.Close()
				})
			}
		}
	}
}

// A client that does not read its replies does not delay Shutdown beyond its context.
func TestShutdownWithADeafClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quiet(new(Arith))
		one, two := net.Pipe() // without a buffer
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.ServeConn(one)
		}()
		defer two.Close()
		enc := gob.NewEncoder(two)
		enc.Encode(stock.Request{ServiceMethod: "Arith.Add", Seq: 1})
		enc.Encode(Args{1, 2})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		s.Shutdown(ctx)
		if d := time.Since(began); d > time.Second+100*time.Millisecond {
			t.Errorf("Shutdown took %v, want 1 s and little more", d)
		}
		<-ended
	})
}

func TestMethodsThatDoNotEnd(t *testing.T) {
	w := newWaits()
	s := quiet(w)
	l := listen(t)
	go s.Serve(l, nil)
	c := dial(t, l.Addr().String())
	c.Go("Waits.Stubborn", &Args{}, new(Reply), nil)
	<-w.entered
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "still running") {
		t.Errorf("Close: %v", err)
	}
	close(w.release)
	closeServer(t, s)
}

func TestInterceptors(t *testing.T) {
	s := quiet(new(Arith), Caller{})
	s.Alias("Sum", "Arith.Add")
	var seen []string
	s.Interceptors = []anser.Interceptor{
		func(next anser.Func) anser.Func {
			return func(ctx context.Context, inv *anser.Invocation) error {
				seen = append(seen, inv.Method)
				if peer, ok := netrpc.PeerFrom(ctx); !ok || peer.Addr == nil || !inv.Server {
					t.Errorf("the peer is %v", peer)
				}
				if inv.Method == "Arith.Mul" {
					return anser.Refuse(anser.PermissionDenied, "multiplying is not for everybody")
				}
				err := next(ctx, inv)
				if r, ok := inv.Reply.(*Reply); ok {
					r.C *= 10
				}
				return err
			}
		},
	}
	c := dial(t, serve(t, s, nil))
	var reply Reply
	if err := c.Call("Sum", Args{1, 2}, &reply); err != nil || reply.C != 30 {
		t.Errorf("Sum: %v, %v", reply, err)
	}
	if err := c.Call("Arith.Mul", &Args{1, 2}, &reply); err == nil || err.Error() != "multiplying is not for everybody" {
		t.Errorf("Mul: %v", err)
	}
	if got := strings.Join(seen, " "); got != "Arith.Add Arith.Mul" {
		t.Errorf("the interceptor saw %s", got)
	}
}

// A method registered once can be called over net/rpc's protocol and over Anser's.
func TestAnserServesTheSame(t *testing.T) {
	newer := anser.NewServer(anser.Logger(slog.New(slog.DiscardHandler)))
	s := quiet()
	s.Anser = newer
	if err := errors.Join(s.Register(new(Arith)), s.Register(Caller{}), s.RegisterFunc("Extra.Twice", new(Arith).Add), s.RegisterFunc("dotless", new(Arith).Add)); err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	go newer.Serve(l)
	defer newer.Close()
	mustAdd(t, dial(t, serve(t, s, nil)))
	c, err := anser.Dial(l.Addr().String(), anser.NoSnapshot())
	client(t, c, err)
	for _, method := range []string{"Arith.Add", "Extra.Twice"} {
		reply, err := anser.Call[Reply](t.Context(), c, method, &Args{7, 8})
		if err != nil || reply.C != 15 {
			t.Errorf("%s: %v, %v", method, reply, err)
		}
	}
	who, err := anser.Call[string](t.Context(), c, "Caller.Calls", &Args{})
	if err != nil || !strings.HasPrefix(*who, "127.0.0.1:") {
		t.Errorf("the caller is %v, %v", who, err)
	}
	if err := s.RegisterFunc("Late.Add", new(Arith).Add); err != nil {
		t.Errorf("a method that is added while the server serves: %v", err)
	}
	if reply, err := anser.Call[Reply](t.Context(), c, "Late.Add", &Args{7, 8}); err != nil || reply.C != 15 {
		t.Errorf("Late.Add: %v, %v", reply, err)
	}
}

type hidden int

func (*hidden) Exported(args Args, reply *Reply) error {
	reply.C = args.A
	return nil
}

func TestRegistrationMistakes(t *testing.T) {
	s := quiet(new(Arith))
	for name, err := range map[string]error{
		"nil":               s.Register(nil),
		"twice":             s.Register(new(Arith)),
		"not exported":      s.Register(new(hidden)),
		"no name":           s.Register(struct{}{}),
		"an empty name":     s.RegisterName("", new(Arith)),
		"no methods":        s.RegisterName("X", 7),
		"a nil service":     s.RegisterName("X", nil),
		"a taken method":    s.RegisterFunc("Arith.Add", new(Arith).Add),
		"no function name":  s.RegisterFunc("", new(Arith).Add),
		"the login":         s.RegisterFunc(netrpc.LoginMethod, new(Arith).Add),
		"the login's alias": s.Alias(netrpc.LoginMethod, "Arith.Add"),
	} {
		if err == nil {
			t.Errorf("%s is not a mistake", name)
		}
	}
	if err := s.RegisterName("Visible", new(hidden)); err != nil {
		t.Error(err)
	}
	// The error suggests a pointer.
	if err := s.RegisterName("Y", Arith(0)); err == nil || !strings.Contains(err.Error(), "hint: pass a pointer") {
		t.Errorf("a value: %v", err)
	}
	// Methods can be added while the server is running.
	c := dial(t, serve(t, s, nil))
	if err := c.Call("Later.Add", Args{1, 2}, new(Reply)); err == nil {
		t.Error("a method runs before it is registered")
	}
	if err := s.RegisterFunc("Later.Add", new(Arith).Add); err != nil {
		t.Error(err)
	}
	var reply Reply
	if err := c.Call("Later.Add", Args{1, 2}, &reply); err != nil || reply.C != 3 {
		t.Errorf("Later.Add: %v, %v", reply, err)
	}
}

// The zero value is a server, as in net/rpc.
func TestServerAsALiteral(t *testing.T) {
	var s netrpc.Server
	s.Logger = slog.New(slog.DiscardHandler)
	if err := s.Register(new(Arith)); err != nil {
		t.Fatal(err)
	}
	one, two := net.Pipe()
	go s.ServeConn(one)
	c := netrpc.NewClient(two)
	defer c.Close()
	mustAdd(t, c)
}

func TestNotCONNECT(t *testing.T) {
	addr := serveHTTP(t, quiet(new(Arith)))
	response, err := http.Get("http://" + addr + netrpc.DefaultRPCPath)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusMethodNotAllowed || string(body) != "405 must CONNECT\n" {
		t.Errorf("got %s, %s", response.Status, body)
	}
}

// A client may send requests after its CONNECT before it has read the answer.
func TestEarlyRequests(t *testing.T) {
	conn, err := net.Dial("tcp", serveHTTP(t, quiet(new(Arith))))
	if err != nil {
		t.Fatal(err)
	}
	c := stock.NewClient(&recorder{
		Conn: conn, first: []byte("CONNECT / HTTP/1.0\r\n\r\n"), skip: len("HTTP/1.0 200 Connected to Go RPC\n\n"),
	})
	defer c.Close()
	mustAdd(t, c)
}

// recorder sends data before the first write, and skips some of the data read.
type recorder struct {
	net.Conn
	first []byte
	skip  int
}

func (r *recorder) Write(p []byte) (int, error) {
	first := r.first
	r.first = nil
	n, err := r.Conn.Write(append(first, p...))
	return n - len(first), err
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	skipped := min(r.skip, n)
	r.skip -= skipped
	copy(p, p[skipped:n])
	return n - skipped, err
}
