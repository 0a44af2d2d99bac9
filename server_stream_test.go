package anser_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/wire"
)

// A handler that panics, or ends its goroutine, fails its stream and nothing else.
func TestHandlerOfAStreamPanics(t *testing.T) {
	var logged bytes.Buffer
	network := new(ansertest.Network)
	s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
		"Chat.Panic": func(_ context.Context, st *bytesStream) error {
			st.Send(text("before"))
			panic("secret")
		},
		"Chat.Exit": func(context.Context, *bytesStream) error {
			runtime.Goexit()
			return nil
		},
		"Chat.Talk": talk,
	}, anser.Logger(slog.New(slog.NewTextHandler(&logged, nil))))
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
	other := open(t, context.Background(), c, "Chat.Talk")
	say(t, other, "still")

	st := open(t, context.Background(), c, "Chat.Panic")
	hear(t, st, "before")
	_, err := st.Recv()
	e := wantFault(t, err, anser.Internal, anser.Executed)
	_, id, _ := strings.Cut(e.Message, "under id ")
	if id == "" || strings.Contains(e.Message, "secret") || !strings.Contains(logged.String(), id) || !strings.Contains(logged.String(), "secret") {
		t.Errorf("%v; logged: %s", err, logged.String())
	}
	st = open(t, context.Background(), c, "Chat.Exit")
	_, err = st.Recv()
	if e := wantFault(t, err, anser.Internal, anser.Executed); !strings.Contains(e.Message, "runtime.Goexit") {
		t.Error(err)
	}

	hear(t, other, "still")
	if st := s.Stats(); st.Panics != 1 || st.Conns != 1 || st.Methods["Chat.Panic"].Failed != 1 || st.Methods["Chat.Exit"].Failed != 1 {
		t.Errorf("%+v", st)
	}
	eventually(t, "only one stream is open", func() bool { st := s.Stats(); return st.Streams == 1 && st.InFlight == 1 })
}

// Open streams go on while the server drains, and Shutdown waits for them as long as its context
// allows.
func TestDrainWithStreams(t *testing.T) {
	for name, grace := range map[string]time.Duration{"in time": time.Hour, "too late": time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				handler := make(chan error, 1)
				s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Talk": func(ctx context.Context, st *bytesStream) error {
					err := talk(ctx, st)
					handler <- err
					return err
				}})
				other := serveStreams(t, network.Listen("b:1"), map[string]streamHandler{"Chat.Talk": talk})
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				both := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial))
				st := open(t, context.Background(), c, "Chat.Talk")
				say(t, st, "before")
				hear(t, st, "before")
				ctx, cancel := context.WithTimeout(context.Background(), grace)
				defer cancel()
				var down error
				done := returned(func() { down = s.Shutdown(ctx) })
				synctest.Wait()
				if over(done) {
					t.Fatal("Shutdown does not wait:", down)
				}
				say(t, st, "meanwhile")
				hear(t, st, "meanwhile")
				elsewhere := open(t, context.Background(), both, "Chat.Talk")
				say(t, elsewhere, "elsewhere")
				hear(t, elsewhere, "elsewhere")
				elsewhere.Close()
				if n := other.Stats().Methods["Chat.Talk"].Calls; n != 1 {
					t.Errorf("%d streams at the other server", n)
				}
				began := time.Now()
				if name == "in time" {
					st.CloseSend()
					hearEnd(t, st)
					<-done
					if err := <-handler; err != nil || down != nil || time.Since(began) > time.Minute {
						t.Error(err, down, time.Since(began))
					}
					return
				}
				_, err := st.Recv()
				if e := wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown); e.Method != "Chat.Talk" || e.Address != "a:1" {
					t.Errorf("%+v", e)
				}
				<-done
				if err := <-handler; anser.CodeOf(err) != anser.Unavailable || !errors.Is(down, context.DeadlineExceeded) {
					t.Error(err, down)
				}
				if d := time.Since(began); d < grace || d > grace+time.Second {
					t.Errorf("it took %v", d)
				}
			})
		})
	}
}

// A lost connection ends its streams on both sides, whatever they wait for. The client can still
// receive the messages that had arrived.
func TestLostConnection(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		handler := make(chan error, 4)
		l := network.Listen("a:1")
		s := serveStreams(t, l, map[string]streamHandler{
			"Chat.Recv": func(ctx context.Context, st *bytesStream) error {
				st.Send(text("arrived"))
				_, err := st.Recv()
				<-ctx.Done()
				handler <- err
				return err
			},
			"Chat.Send": func(_ context.Context, st *bytesStream) error {
				err := flood(st)
				handler <- err
				return err
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		receives, sends := open(t, context.Background(), c, "Chat.Recv"), open(t, context.Background(), c, "Chat.Send")
		var sendErr error
		done := returned(func() { sendErr = flood(sends) })
		synctest.Wait()
		if over(done) || len(handler) > 0 {
			t.Fatal("nobody waits")
		}
		l.Kill()
		<-done
		wantFault(t, sendErr, anser.Unavailable, anser.OutcomeUnknown)
		hear(t, receives, "arrived")
		_, err := receives.Recv()
		wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
		for range 2 {
			if err := <-handler; anser.CodeOf(err) != anser.Unavailable {
				t.Error("a handler got", err)
			}
		}
		synctest.Wait()
		if st := s.Stats(); st.Streams != 0 || st.InFlight != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// Streams count as calls in flight.
func TestMaxInFlightWithStreams(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Idle": idle}, anser.MaxInFlight(2))
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		for range 2 {
			defer open(t, context.Background(), c, "Chat.Idle").Close()
		}
		synctest.Wait()
		third := open(t, context.Background(), c, "Chat.Idle")
		_, err := third.Recv()
		if e := wantFault(t, err, anser.ResourceExhausted, anser.Refused); !strings.Contains(e.Message, "anser.MaxInFlight") {
			t.Error(err)
		}
		if st := s.Stats(); st.Streams != 2 || st.InFlight != 2 || st.Refused != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// A stream whose client has cancelled counts for the limits until its handler has returned:
// otherwise a client could start any number of handlers.
func TestCancelledStreamsCount(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		release := make(chan struct{})
		s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Deaf": func(context.Context, *bytesStream) error {
			<-release
			return nil
		}}, anser.MaxStreams(2))
		defer close(release)
		p := rawClient(t, network, "a:1")
		p.Send(wire.AppendMethod(nil, 1, "Chat.Deaf"))
		for id := range uint64(3) {
			p.Send(openRequest(id+1, 1, nil), wire.AppendCancel(nil, id+1))
		}
		f, err := p.Next()
		if err != nil || f.Type != wire.TypeError || f.ID != 3 {
			t.Fatal(f.Type, f.ID, err)
		}
		if e, err := wire.ParseError(f.Flags, f.Body); e.Code != wire.ResourceExhausted || e.Outcome != wire.Refused || err != nil {
			t.Errorf("%+v, %v", e, err)
		}
		if st := s.Stats(); st.Streams != 2 || st.Cancelled != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// The interceptors of a server surround the handler, and the end of a context that they made ends
// the waiting of the handler.
func TestInterceptorsOfAHandler(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		type key struct{}
		var seen []string
		bounded := func(next anser.Func) anser.Func {
			return func(ctx context.Context, inv *anser.Invocation) error {
				if !inv.Stream || !inv.Server || inv.Request != nil || inv.Reply != nil {
					t.Errorf("%+v", inv)
				}
				ctx, cancel := context.WithTimeout(context.WithValue(ctx, key{}, "value"), time.Second)
				defer cancel()
				seen = append(seen, "before")
				if inv.Method == "Chat.Lost" {
					inv = &anser.Invocation{Method: inv.Method}
				}
				err := next(ctx, inv)
				seen = append(seen, "after")
				return err
			}
		}
		var got []error
		handler := func(wait func(st *bytesStream) error) streamHandler {
			return func(ctx context.Context, st *bytesStream) error {
				if ctx.Value(key{}) != "value" || st.Context().Value(key{}) != "value" {
					t.Error("the context is not that of the interceptor")
				}
				err := wait(st)
				got = append(got, err)
				return err
			}
		}
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
			"Chat.Recv": handler(func(st *bytesStream) error { _, err := st.Recv(); return err }),
			"Chat.Send": handler(flood),
			"Chat.Lost": talk,
		}, anser.Intercept(bounded))
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		for _, method := range []string{"Chat.Recv", "Chat.Send"} {
			st := open(t, context.Background(), c, method)
			began := time.Now()
			time.Sleep(time.Minute) // the client does not receive, so that the handler's Send waits
			var err error
			for err == nil {
				_, err = st.Recv()
			}
			wantFault(t, err, anser.DeadlineExceeded, anser.Executed)
			if d := time.Since(began); d != time.Minute {
				t.Errorf("%s: it took %v", method, d)
			}
		}
		st := open(t, context.Background(), c, "Chat.Lost")
		_, err := st.Recv()
		if anser.CodeOf(err) != anser.Internal {
			t.Error(err)
		}
		if len(got) != 2 || anser.CodeOf(got[0]) != anser.DeadlineExceeded || anser.CodeOf(got[1]) != anser.DeadlineExceeded {
			t.Errorf("the handlers got %v", got)
		}
		if s := strings.Join(seen, " "); s != strings.TrimSpace(strings.Repeat("before after ", 3)) {
			t.Error(s)
		}
	})
}

// A handler that returns successfully in the middle of a message does not make the message look
// complete.
func TestUnfinishedMessage(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Quit": func(_ context.Context, st *bytesStream) error {
			large := make([]byte, 1<<20)
			go st.Send(&large)
			time.Sleep(time.Second) // it waits for credit
			return nil
		}})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		st := open(t, context.Background(), c, "Chat.Quit")
		time.Sleep(time.Minute)
		_, err := st.Recv()
		if e := wantFault(t, err, anser.Internal, anser.Executed); !strings.Contains(e.Message, "in the middle of a message") {
			t.Error(err)
		}
	})
}

// A handler runs on a goroutine of its own: while it does nothing, calls on its connection are
// answered.
func TestStreamsDoNotRunInline(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Idle": idle})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		defer open(t, context.Background(), c, "Chat.Idle").Close()
		began := time.Now()
		if _, err := call(context.Background(), c, "Echo.Say", "hello"); err != nil || time.Since(began) > 0 {
			t.Error(err, time.Since(began))
		}
		if st := s.Stats(); st.Handoffs != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// Options that make no sense for a stream are refused.
func TestHandleStreamMistakes(t *testing.T) {
	s := anser.NewServer(silent)
	for want, err := range map[string]error{
		"leave anser.Idempotent":  anser.HandleStream(s, "Chat.A", talk, anser.Idempotent()),
		"and anser.Inline out":    anser.HandleStream(s, "Chat.B", talk, anser.Inline()),
		"the function is nil":     anser.HandleStream[[]byte, []byte](s, "Chat.C", nil),
		"has not the form":        anser.HandleStream(s, "Chat", talk),
		"give the second one ano": errors.Join(anser.HandleStream(s, "Chat.D", talk), anser.HandleStream(s, "Chat.D", talk)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if err := anser.HandleStream(s, "Chat.E", talk, anser.Concurrent(), anser.Alias("Chat.F")); err != nil {
		t.Error(err)
	}
	for name, opt := range map[string]anser.ServerOption{
		"FlowControlWindows": anser.FlowControlWindows(4095, 1<<20), "FlowControlWindows(4096, ": anser.FlowControlWindows(4096, tooWide), "MaxStreams": anser.MaxStreams(-1),
	} {
		if err := anser.NewServer(opt).Serve(listen(t)); err == nil || !strings.Contains(err.Error(), "anser."+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The description of a server's methods says which of them are streams.
func TestDescribeStreams(t *testing.T) {
	network := new(ansertest.Network)
	serveStreams(t, network.Listen("a:1"), map[string]streamHandler{"Chat.Talk": talk})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	list, err := anser.Call[anser.MethodList](context.Background(), c, anser.MethodsName, &anser.None{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, m := range list.Methods {
		got[m.Name] = m.Stream
	}
	if len(got) != 2 || !got["Chat.Talk"] || got["Echo.Say"] {
		t.Error(got)
	}
}

// A message that cannot be decoded fails its stream, on either side.
func TestBrokenMessages(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent)
		anser.HandleStream(s, "Arith.Squares", func(_ context.Context, st *anser.Stream[Reply, Args]) error {
			for _, err := range st.All() {
				if err != nil {
					return err
				}
			}
			return nil
		})
		anser.HandleStream(s, "Arith.Text", func(ctx context.Context, st *anser.Stream[string, Args]) error {
			st.Send(new("no struct"))
			<-ctx.Done() // the client cancels
			return ctx.Err()
		})
		run(t, s, network.Listen("a:1"))
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		st, err := anser.Open[string, Reply](context.Background(), c, "Arith.Squares")
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Send(new("no struct")); err != nil {
			t.Fatal(err)
		}
		_, err = st.Recv()
		wantFault(t, err, anser.InvalidArgument, anser.Executed)
		back, err := anser.Open[Args, Reply](context.Background(), c, "Arith.Text")
		if err != nil {
			t.Fatal(err)
		}
		_, err = back.Recv()
		if e := wantFault(t, err, anser.Internal, anser.OutcomeUnknown); e.Phase != anser.PhaseDecode || e.Remote {
			t.Errorf("%+v", e)
		}
		synctest.Wait()
		if st := s.Stats(); st.Streams != 0 || st.Conns != 1 {
			t.Errorf("%+v", st)
		}
		if err := back.Send(new(Args)); anser.CodeOf(err) != anser.Internal {
			t.Error(err)
		}
		if _, err := st.Recv(); err == io.EOF {
			t.Error("a stream that failed ends well")
		}
	})
}

// Observers are called at the opening and at the end of a stream on both sides, and can refuse
// it.
func TestObserversOfStreams(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var mu sync.Mutex
		var seen []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprintf(format, args...))
		}
		watch := func(side string, refuses string) anser.Observer {
			return anser.Observer{
				Request: func(_ context.Context, m anser.MessageInfo) error {
					note("%s request %s %d", side, m.Method, m.Bytes)
					if m.Method == refuses {
						return errors.New("not here")
					}
					return nil
				},
				Reply: func(_ context.Context, m anser.MessageInfo) {
					note("%s reply %s %s", side, m.Method, anser.CodeOf(m.Err))
				},
			}
		}
		s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
			"Chat.Talk": talk, "Chat.Secret": talk,
			"Chat.Fail": func(context.Context, *bytesStream) error { return anser.Errorf(anser.NotFound, "no") },
		}, anser.Observe(watch("server", "Chat.Secret")))
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Observe(watch("client", "Chat.Own")))
		for _, test := range []struct {
			method string
			want   []string
			code   anser.Code
		}{
			{"Chat.Talk", []string{"client request Chat.Talk 5", "server request Chat.Talk 5", "server reply Chat.Talk ok", "client reply Chat.Talk ok"}, anser.OK},
			{"Chat.Fail", []string{"client request Chat.Fail 5", "server request Chat.Fail 5", "server reply Chat.Fail not found", "client reply Chat.Fail not found"}, anser.NotFound},
			{"Chat.Secret", []string{"client request Chat.Secret 5", "server request Chat.Secret 5", "client reply Chat.Secret permission denied"}, anser.PermissionDenied},
			{"Chat.Own", []string{"client request Chat.Own 5"}, anser.PermissionDenied},
		} {
			seen = nil
			st, err := anser.OpenWith[[]byte, []byte](context.Background(), c, test.method, text("hello"))
			if err == nil {
				st.CloseSend()
				for err == nil {
					_, err = st.Recv()
				}
			}
			synctest.Wait()
			if code := anser.CodeOf(ended(err)); code != test.code || !slices.Equal(seen, test.want) {
				t.Errorf("%s: %v, %q, want %q", test.method, err, seen, test.want)
			}
		}
		if n := s.Stats().Methods["Chat.Secret"].Calls; n != 0 {
			t.Errorf("what an observer refused ran %d times", n)
		}
	})
}
