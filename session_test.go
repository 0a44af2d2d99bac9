package anser_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

const (
	shout anser.Method[[]byte, []byte] = "Client.Shout"
	note  anser.OnewayMethod[[]byte]   = "Client.Note"
)

// handlers makes a server for calls to a client. It is closed when the test ends, after the
// clients.
func handlers(t testing.TB, opts ...anser.ServerOption) *anser.Server {
	t.Helper()
	s := anser.NewServer(append([]anser.ServerOption{silent}, opts...)...)
	shout.Handle(s, func(_ context.Context, in *[]byte) (*[]byte, error) {
		return text(strings.ToUpper(string(*in))), nil
	})
	t.Cleanup(func() { s.Close() })
	return s
}

// askBack is a handler that calls its caller before it answers.
func askBack(ctx context.Context, in *[]byte) (*[]byte, error) {
	sess, ok := anser.SessionFrom(ctx)
	if !ok {
		return nil, anser.Errorf(anser.FailedPrecondition, "the caller takes no calls")
	}
	out, err := shout.Call(ctx, sess.Client(), in)
	if err != nil {
		return nil, err
	}
	return text(fmt.Sprintf("%s from %d", *out, sess.ID())), nil
}

// A handler calls its caller, in whichever mode it runs, while others do the same.
func TestServerCallsClient(t *testing.T) {
	for name, opt := range map[string]anser.HandleOption{"inline": anser.Inline(), "concurrent": anser.Concurrent()} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			s := anser.NewServer(silent)
			anser.Handle(s, "Echo.Ask", askBack, opt)
			run(t, s, l)
			c := dial(t, l.Addr().String(), anser.Handlers(handlers(t)), anser.Conns(2))
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					for j := range 20 {
						in := fmt.Sprintf("hello %d %d", i, j)
						out, err := call(context.Background(), c, "Echo.Ask", in)
						if want := strings.ToUpper(in) + " from 1"; err != nil || out != want {
							t.Errorf("%q, %v; want %q", out, err, want)
							return
						}
					}
				})
			}
			wg.Wait()
			_, err := call(context.Background(), dial(t, l.Addr().String()), "Echo.Ask", "hello")
			wantFault(t, err, anser.FailedPrecondition, anser.Executed)
			if n := len(s.Sessions()); n != 1 {
				t.Errorf("%d sessions, want 1", n)
			}
		})
	}
}

// The features of clients are available to their servers: errors, cancellation, futures, bound
// functions, trailers, several results, large messages and the list of methods.
func TestWhatServersCallClientsWith(t *testing.T) {
	l := listen(t)
	began := make(chan *anser.Session, 1)
	s := anser.NewServer(silent, anser.OnSession(func(sess *anser.Session) { began <- sess }))
	run(t, s, l)
	h := handlers(t, anser.MaxMessage(1<<20))
	ended := make(chan error)
	anser.Handle(h, "Client.Wait", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	anser.Handle(h, "Client.Fail", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		anser.SetTrailer(ctx, "why", anser.MetadataFrom(ctx).Get("reason"))
		return nil, anser.Errorf(anser.NotFound, "not here")
	})
	anser.Handle(h, "Client.Peer", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		p, _ := anser.PeerFrom(ctx)
		return text(p.Addr.String()), nil
	})
	if err := h.RegisterName("Math", new(Math), named); err != nil {
		t.Fatal(err)
	}
	dial(t, l.Addr().String(), anser.Handlers(h)) // makes no call
	sess := <-began
	c, ctx := sess.Client(), context.Background()
	if out, err := anser.Call[[]byte](ctx, c, "Client.Peer", text("")); err != nil || string(*out) != l.Addr().String() {
		t.Error(err)
	}
	var trailer anser.Metadata
	_, err := anser.Call[[]byte](anser.WithMetadata(ctx, anser.Metadata{"reason": "none"}), c, "Client.Fail", text(""), anser.Trailer(&trailer))
	if e := wantFault(t, err, anser.NotFound, anser.Executed); !e.Remote || trailer.Get("why") != "none" {
		t.Error(e, trailer)
	}
	f := anser.Go[[]byte](ctx, c, "Client.Wait", text(""))
	eventually(t, "the handler runs", func() bool { return h.Stats().Methods["Client.Wait"].Calls == 1 })
	f.Cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var divMod func(ctx context.Context, a, b int) (q, r int, err error)
	if err := anser.Bind(c, "Math.DivMod", &divMod); err != nil {
		t.Fatal(err)
	}
	if q, r, err := divMod(ctx, 38, 7); q != 5 || r != 3 || err != nil {
		t.Error(q, r, err)
	}
	large := text(strings.Repeat("x", 1<<20))
	var futures []*anser.Future[[]byte]
	for range 10 {
		futures = append(futures, shout.Go(ctx, c, large, anser.Timeout(time.Minute)))
	}
	for _, f := range futures {
		if out, err := f.Wait(); err != nil || string(*out) != strings.ToUpper(string(*large)) {
			t.Error(err)
		}
	}
	larger := append(*large, 'x')
	_, err = shout.Call(ctx, c, &larger)
	wantFault(t, err, anser.ResourceExhausted, anser.Refused)
	_, err = anser.Call[[]byte](ctx, c, "Client.Non", text(""))
	wantFault(t, err, anser.Unimplemented, anser.Refused)
	list, err := anser.Call[anser.MethodList](ctx, c, anser.MethodsName, new(anser.None), anser.Codec(new(codec.JSON)))
	if err != nil || len(list.Methods) < 8 {
		t.Error(list, err)
	}
}

// So are deadlines: the handler at the client has the deadline of the call, and its context ends
// then.
func TestDeadlineOfACallToAClient(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		began := make(chan *anser.Session, 1)
		s := anser.NewServer(silent, anser.OnSession(func(sess *anser.Session) { began <- sess }))
		run(t, s, network.Listen("a:1"))
		const limit = 20 * time.Millisecond
		h := handlers(t)
		left, ended := make(chan time.Duration, 1), make(chan error, 1)
		anser.Handle(h, "Client.Wait", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
			deadline, _ := ctx.Deadline()
			left <- time.Until(deadline)
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		})
		dial(t, "a:1", anser.Handlers(h), anser.Dialer(network.Dial))
		start := time.Now()
		_, err := anser.Call[[]byte](context.Background(), (<-began).Client(), "Client.Wait", text(""), anser.Timeout(limit))
		if anser.CodeOf(err) != anser.DeadlineExceeded { // of the caller, or of the handler, whichever was first
			t.Error(err)
		}
		if d := <-left; d != limit {
			t.Errorf("the handler has %v, want %v", d, limit)
		}
		// Its own deadline passes at the moment at which the caller gives up and cancels.
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if d := time.Since(start); d != limit {
			t.Errorf("it took %v, want %v", d, limit)
		}
	})
}

// A thousand clients get a message each, and those in a group one more.
func TestBroadcast(t *testing.T) {
	n := 1000
	if raced || testing.Short() {
		n = 100
	}
	l := listen(t)
	s := anser.NewServer(silent)
	anser.Handle(s, "Room.Join", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		sess, _ := anser.SessionFrom(ctx)
		sess.Join(string(*in))
		return in, nil
	})
	run(t, s, l)
	var got, shouted atomic.Int64
	h := handlers(t)
	note.Handle(h, func(_ context.Context, in *[]byte) error {
		if got.Add(1); string(*in) == "even" {
			shouted.Add(1)
		}
		return nil
	})
	for i := range n {
		// With a dialer of its own, each client has a connection and a session of its own.
		c := dial(t, l.Addr().String(), anser.Handlers(h), anser.Dialer(new(net.Dialer).DialContext))
		if _, err := call(context.Background(), c, "Room.Join", []string{"even", "odd"}[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if sent, failed := s.Broadcast(context.Background(), "Client.Note", text("all"), nil); sent != n || failed != nil {
		t.Errorf("%d sent, %v", sent, failed)
	}
	sending := time.Since(began)
	if sent, failed := s.Broadcast(context.Background(), "Client.Note", text("even"), anser.InGroup("even")); sent != n/2 || failed != nil {
		t.Errorf("%d sent, %v", sent, failed)
	}
	eventually(t, "all have the messages", func() bool { return got.Load() == int64(n+n/2) && shouted.Load() == int64(n/2) })
	t.Logf("%d messages were sent in %v, and all %d have arrived after %v", n, sending, n+n/2, time.Since(began))
	sess := s.Sessions()[0]
	if sess.Leave("even"); len(sess.Groups()) != 0 || anser.InGroup("even")(sess) {
		t.Error(sess.Groups())
	}
}

// The session goes on while the connection is lost: calls wait for the client. Finally the
// session ends.
func TestSessionOutlivesItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		began := make(chan *anser.Session, 2)
		s := anser.NewServer(silent, anser.OnSession(func(sess *anser.Session) { began <- sess }), anser.SessionGrace(30*time.Second))
		run(t, s, network.Listen("a:1"))
		var mu sync.Mutex
		var conns []net.Conn
		var down atomic.Bool
		c := dial(t, "a:1", anser.Handlers(handlers(t)), anser.Dialer(func(ctx context.Context, n, address string) (net.Conn, error) {
			if down.Load() {
				return nil, errors.New("down")
			}
			nc, err := network.Dial(ctx, n, address)
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, nc)
			return nc, err
		}))
		cut := func() {
			mu.Lock()
			defer mu.Unlock()
			for _, nc := range conns {
				nc.Close()
			}
			conns = nil
		}
		sess := <-began
		sess.Join("kept")
		back := sess.Client()
		for range 3 {
			time.Sleep(10 * time.Second) // a connection that was open for long is replaced at once
			cut()
			synctest.Wait()
			if out, err := shout.Call(context.Background(), back, text("hello")); err != nil || string(*out) != "HELLO" {
				t.Fatal(err)
			}
		}
		// Away, but not for too long.
		time.Sleep(10 * time.Second)
		down.Store(true)
		cut()
		synctest.Wait()
		if sess.Connected() || len(s.Sessions()) != 1 {
			t.Error("the session is connected, or gone")
		}
		if sent, failed := s.Broadcast(context.Background(), "Client.Note", text(""), nil); sent != 0 || len(failed) != 1 {
			t.Error(sent, failed)
		} else {
			wantFault(t, failed[0].Err, anser.Unavailable, anser.NotSent)
		}
		f := shout.Go(context.Background(), back, text("hello"), anser.Timeout(25*time.Second))
		time.Sleep(5 * time.Second)
		down.Store(false)
		if out, err := f.Wait(); err != nil || string(*out) != "HELLO" {
			t.Fatal(err)
		}
		if !anser.InGroup("kept")(sess) {
			t.Error("the session has lost its group")
		}
		// Away for too long.
		down.Store(true)
		cut()
		synctest.Wait()
		f = shout.Go(context.Background(), back, text("hello"), anser.Timeout(time.Minute))
		start := time.Now()
		<-sess.Done()
		if d := time.Since(start); d > 31*time.Second || d < 29*time.Second {
			t.Errorf("the session has ended after %v", d)
		}
		_, err := f.Wait()
		if e := wantFault(t, err, anser.Unavailable, anser.NotSent); !strings.Contains(e.Message, "the session of the client has ended") {
			t.Error(e)
		}
		if _, err := shout.Call(context.Background(), sess.Client(), text("")); anser.CodeOf(err) != anser.Unavailable {
			t.Error(err)
		}
		down.Store(false)
		if next := <-began; next.ID() == sess.ID() || !next.Connected() {
			t.Error("there is no new session")
		}
		c.Close()
	})
}

// The end of a connection cancels the handlers that the client runs for its server, and the
// outcome of the open calls is unknown.
func TestSessionCallsEndWithTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		began := make(chan *anser.Session, 1)
		s := anser.NewServer(silent, anser.OnSession(func(sess *anser.Session) { began <- sess }))
		run(t, s, network.Listen("a:1"))
		h := handlers(t)
		var ended atomic.Int64
		anser.Handle(h, "Client.Wait", untilDone(&ended))
		c := dial(t, "a:1", anser.Handlers(h), anser.Dialer(network.Dial))
		f := anser.Go[[]byte](context.Background(), (<-began).Client(), "Client.Wait", text(""))
		synctest.Wait()
		c.Close()
		_, err := f.Wait()
		wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
		synctest.Wait()
		if ended.Load() != 1 {
			t.Error("the handler goes on")
		}
	})
}

// A server that stops lets its calls to clients finish, like the calls of clients.
func TestDrainWaitsForCallsToClients(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		began := make(chan *anser.Session, 1)
		s := anser.NewServer(silent, anser.OnSession(func(sess *anser.Session) { began <- sess }))
		run(t, s, network.Listen("a:1"))
		h := handlers(t)
		anser.Handle(h, "Client.Slow", func(_ context.Context, in *[]byte) (*[]byte, error) {
			time.Sleep(time.Second)
			return in, nil
		})
		dial(t, "a:1", anser.Handlers(h), anser.Dialer(network.Dial))
		f := anser.Go[[]byte](context.Background(), (<-began).Client(), "Client.Slow", text("hello"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if out, err := f.Wait(); err != nil || string(*out) != "hello" {
			t.Error(err)
		}
	})
}

// Calling a client without handlers, and answering a call that was not made, break the protocol.
func TestSessionsNeedConsent(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		closed := make(chan wire.Reason, 1)
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			p.Send(wire.AppendMethod(nil, 1, "Client.Wait"))
			if reason, _, err := p.ReadClose(); err == nil {
				select {
				case closed <- reason:
				default:
				}
			}
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		if _, err := call(context.Background(), c, "Echo.Say", "", anser.Timeout(time.Second)); err == nil {
			t.Error("no error")
		}
		if reason := <-closed; reason != wire.BadFrame {
			t.Error(reason)
		}
	})
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), nil)
		for want, frame := range map[wire.Reason][]byte{wire.BadID: wirepeer.Reply(1|fromServer, nil), wire.BadFrame: wirepeer.Reply(1, nil)} {
			p := rawClient(t, network, "a:1")
			p.Send(frame)
			if reason, _, err := p.ReadClose(); err != nil || reason != want {
				t.Errorf("%v, %v; want %v", reason, err, want)
			}
		}
	})
}

func TestHandlersMustBeThere(t *testing.T) {
	if _, err := anser.Dial("127.0.0.1:1", anser.Handlers(nil)); err == nil {
		t.Error("no error")
	}
	s := anser.NewServer(silent)
	anser.Handle(s, "nonsense", mul)
	if _, err := anser.Dial("127.0.0.1:1", anser.Handlers(s)); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Error(err)
	}
	s = handlers(t)
	s.Close()
	if _, err := anser.Dial("127.0.0.1:1", anser.Handlers(s)); !errors.Is(err, anser.ErrServerClosed) {
		t.Error(err)
	}
}

// A client that has completed its handshake just when the server begins to drain has its calls
// served, and a session in them.
func TestSessionAsAHandshakeEnds(t *testing.T) {
	network := new(ansertest.Network)
	l := &stoppingListener{Listener: network.Listen("a:1"), closed: make(chan struct{})}
	s := anser.NewServer(silent)
	anser.Handle(s, "Echo.Session", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		if _, ok := anser.SessionFrom(ctx); !ok {
			return nil, anser.Errorf(anser.FailedPrecondition, "there is no session")
		}
		return text("a session"), nil
	})
	done := make(chan struct{})
	l.greeting = func() {
		go func() {
			defer close(done)
			s.Shutdown(context.Background())
		}()
		<-l.closed
	}
	run(t, s, l)
	nc, err := network.Dial(context.Background(), "tcp", "a:1")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	p := wirepeer.New(nc)
	own := wire.DefaultSettings()
	own.Session = 7
	p.Send(wirepeer.Hello(own), wire.AppendMethod(nil, 1, "Echo.Session"), wirepeer.Request(1, 1, nil))
	if _, err := p.ReadHello(); err != nil {
		t.Fatal(err)
	}
	if f, err := p.NextOf(wire.TypeReply, wire.TypeError); err != nil || f.Type != wire.TypeReply || string(f.Body[2:]) != "a session" {
		t.Fatalf("%v %q, error %v", f.Type, f.Body, err)
	}
	p.Send(wire.AppendDrain(nil, wire.FlagAck, 0))
	p.ReadClose()
	p.Close()
	<-done
	if n := len(s.Sessions()); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// stoppingListener calls greeting before a server writes for the first time on its connection,
// and reports when it is closed.
type stoppingListener struct {
	net.Listener
	greeting func()
	closed   chan struct{}
	once     sync.Once
}

func (l *stoppingListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &greetingConn{Conn: nc, greeting: sync.OnceFunc(l.greeting)}, nil
}

func (l *stoppingListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type greetingConn struct {
	net.Conn
	greeting func()
}

func (c *greetingConn) Write(b []byte) (int, error) {
	c.greeting()
	return c.Conn.Write(b)
}
