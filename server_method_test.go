package anser_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A handler that ends its goroutine, as t.FailNow does in a test's handler, fails its call alone.
func TestHandlerThatEndsItsGoroutine(t *testing.T) {
	for name, opt := range map[string]anser.HandleOption{"inline": anser.Inline(), "concurrent": anser.Concurrent()} {
		for _, wait := range []time.Duration{0, 10 * time.Millisecond} { // after that the connection has another reader
			t.Run(name+wait.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, network *ansertest.Network) {
					s := anser.NewServer(silent)
					anser.Handle(s, "Echo.Say", echo, opt)
					anser.Handle(s, "Echo.Exit", func(ctx context.Context, in *[]byte) (*[]byte, error) {
						time.Sleep(wait)
						runtime.Goexit()
						return in, nil
					}, opt)
					run(t, s, network.Listen("a:1"))
					c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
					for range 3 {
						_, err := call(context.Background(), c, "Echo.Exit", "")
						e := wantFault(t, err, anser.Internal, anser.Executed)
						if !strings.Contains(e.Message, "ended its goroutine") {
							t.Error(e.Message)
						}
						if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
							t.Fatal(out, err)
						}
					}
					synctest.Wait()
					if st := s.Stats(); st.InFlight != 0 || st.Conns != 1 || st.Accepted != 1 || st.Methods["Echo.Exit"].Failed != 3 {
						t.Errorf("%+v", st)
					}
				})
			})
		}
	}
}

// explosive is a codec that panics in the function that its name selects.
type explosive struct{ codec.Raw }

func (explosive) ID() uint8    { return codec.FirstFree }
func (explosive) Name() string { return "explosive" }

func (explosive) Append(dst []byte, v any) ([]byte, error) {
	if b := *v.(*[]byte); string(b) == "append" || string(b) == "reply" {
		panic("secret of append")
	}
	return codec.Raw{}.Append(dst, v)
}

func (explosive) Unmarshal(data []byte, v any) error {
	if string(data) == "unmarshal" {
		panic("secret of unmarshal")
	}
	return codec.Raw{}.Unmarshal(data, v)
}

// A panic of the user's code fails its call and no other. The caller gets an id, and the log has
// the rest.
func TestPanics(t *testing.T) {
	for name, opt := range map[string]anser.HandleOption{"inline": anser.Inline(), "concurrent": anser.Concurrent()} {
		t.Run(name, func(t *testing.T) {
			network := new(ansertest.Network)
			var log syncBuffer
			s := anser.NewServer(anser.Logger(slog.New(slog.NewJSONHandler(&log, nil))), anser.Codecs(explosive{}),
				anser.Intercept(with(func(ctx context.Context, inv *anser.Invocation, next anser.Func) error {
					if in, ok := inv.Request.(*[]byte); ok && string(*in) == "interceptor" {
						panic("secret of the interceptor")
					}
					return next(ctx, inv)
				})))
			anser.Handle(s, "Echo.Say", func(ctx context.Context, in *[]byte) (*[]byte, error) {
				switch string(*in) {
				case "handler":
					panic("secret of the handler")
				case "nil":
					var none *Args
					return text(fmt.Sprint(none.A)), nil //nits:ignore nilness the panic is what the test wants
				case "error":
					panic(anser.Errorf(anser.NotFound, "secret error"))
				case "make reply":
					return text("reply"), nil
				}
				return in, nil
			}, opt)
			run(t, s, network.Listen("a:1"))
			c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Codecs(explosive{}))
			use := anser.Codec(explosive{})
			want := map[string]string{
				"handler": "the handler panicked; ", "nil": "the handler panicked; ", "error": "the handler panicked; ", "interceptor": "the handler panicked; ",
				"make reply": "the codec panicked on the reply; ",
			}
			for in, text := range want {
				_, err := call(context.Background(), c, "Echo.Say", in, use)
				e := wantFault(t, err, anser.Internal, anser.Executed)
				rest, ok := strings.CutPrefix(e.Message, text+"the server's log has the details under id ")
				if !ok || len(rest) != 10 || strings.Contains(err.Error(), "secret") {
					t.Errorf("%s: %v", in, err)
				}
				if !strings.Contains(log.String(), `"id":"`+rest+`"`) {
					t.Errorf("%s: the log does not have the id %s", in, rest)
				}
			}
			_, err := call(context.Background(), c, "Echo.Say", "unmarshal", use)
			wantFault(t, err, anser.Internal, anser.Refused)
			// On the client's side it is the caller's own codec.
			_, err = call(context.Background(), c, "Echo.Say", "append", use)
			wantFault(t, err, anser.Internal, anser.NotSent)
			if out, err := call(context.Background(), c, "Echo.Say", "hello", use); out != "hello" || err != nil {
				t.Error(out, err)
			}
			if st := s.Stats(); st.Panics != 6 || st.Accepted != 1 {
				t.Errorf("%+v", st)
			}
			eventually(t, "no call is in flight", func() bool { return s.Stats().InFlight == 0 })
			for _, secret := range []string{"secret of the handler", "secret of the interceptor", "secret of append", "secret of unmarshal", "goroutine"} {
				if !strings.Contains(log.String(), secret) {
					t.Errorf("the log does not have %q", secret)
				}
			}
		})
	}
}

// syncBuffer is a buffer for a logger.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A codec that panics while it decodes on the client fails the call.
func TestPanicInDecode(t *testing.T) {
	network := new(ansertest.Network)
	rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
		for {
			f, err := p.NextOf(wire.TypeRequest)
			if err != nil {
				return
			}
			frame := append(wire.AppendReplyHead(nil, f.ID, 0, codec.FirstFree, 0, nil), "unmarshal"...)
			wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
			p.Send(frame)
		}
	})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	_, err := call(context.Background(), c, "Echo.Say", "hello", anser.Codec(explosive{}))
	if e := wantFault(t, err, anser.Internal, anser.Executed); e.Phase != anser.PhaseDecode {
		t.Error(err)
	}
}

func TestHandleMistakes(t *testing.T) {
	for want, add := range map[string]func(s *anser.Server) error{
		`method "Arith.Mul" is there already: give the second one another name`: func(s *anser.Server) error {
			anser.Handle(s, "Arith.Mul", mul)
			return anser.Handle(s, "Arith.Mul", mul)
		},
		`method "Arith.Times" is there already`: func(s *anser.Server) error {
			anser.Handle(s, "Arith.Times", mul)
			return anser.Handle(s, "Arith.Mul", mul, anser.Alias("Arith.Times"))
		},
		`method "Arith.Mul" has no handler: the function is nil`: func(s *anser.Server) error {
			return anser.Handle[Args, Reply](s, "Arith.Mul", nil)
		},
		`method "Arith.Mul" has an option that is nil`:                                      func(s *anser.Server) error { return anser.Handle(s, "Arith.Mul", mul, nil) },
		`method name "Mul" has not the form Service.Method: use a name such as "Arith.Mul"`: func(s *anser.Server) error { return anser.Handle(s, "Mul", mul) },
		`method name ".Mul" has not the form`:                                               func(s *anser.Server) error { return anser.Handle(s, ".Mul", mul) },
		`method name "Arith." has not the form`:                                             func(s *anser.Server) error { return anser.Handle(s, "Arith.", mul) },
		`method name of 0 bytes, want 1 to 512: use a name such as "Arith.Mul"`:             func(s *anser.Server) error { return anser.Handle(s, "", mul) },
		`method name of 513 bytes, want 1 to 512`:                                           func(s *anser.Server) error { return anser.Handle(s, "A."+strings.Repeat("m", 511), mul) },
		`has a control character`:                                                           func(s *anser.Server) error { return anser.Handle(s, "Arith.\x07", mul) },
		`begins with "Anser.", which belongs to the protocol: use another name`:             func(s *anser.Server) error { return anser.Handle(s, "Anser.Mul", mul) },
	} {
		s := anser.NewServer(silent)
		err := add(s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
			continue
		}
		// Serve returns the error again, for callers that ignored it.
		if e := s.Serve(new(ansertest.Network).Listen("a:1")); e == nil || !strings.Contains(e.Error(), err.Error()) {
			t.Errorf("Serve: %v", e)
		}
		s.Close()
	}
}

func TestAliases(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	anser.Handle(s, "Arith.Mul", mul, anser.Alias("Arith.Times", "Math.Mul"), anser.DeprecatedAlias("Old.Mul"))
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	for _, name := range []string{"Arith.Mul", "Arith.Times", "Math.Mul", "Old.Mul", "Old.Mul"} {
		if out, err := anser.Call[Reply](context.Background(), c, name, &Args{7, 8}); err != nil || out.C != 56 {
			t.Fatal(name, err)
		}
	}
	st := s.Stats()
	if len(st.Methods) != 3 || st.Methods["Arith.Mul"].Calls != 5 {
		t.Errorf("%+v", st.Methods)
	}
	if len(st.DeprecatedAliases) != 1 || st.DeprecatedAliases["Old.Mul"] != 2 {
		t.Errorf("%+v", st.DeprecatedAliases)
	}
}

func TestNilReply(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": func(context.Context, *[]byte) (*[]byte, error) { return nil, nil }})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	_, err := call(context.Background(), c, "Echo.Say", "")
	if e := wantFault(t, err, anser.Internal, anser.Executed); e.Message != "the handler returned neither a reply nor an error" {
		t.Error(err)
	}
}
