package anser_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// A call made inside a bubble and one outside share nothing that belongs to the bubble.
func TestCallsInAndOutOfBubbles(t *testing.T) {
	round := func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		for range 50 {
			if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
				t.Fatal(out, err)
			}
		}
	}
	for range 3 {
		t.Run("in", func(t *testing.T) { bubble(t, round) })
		t.Run("out", func(t *testing.T) { round(t, new(ansertest.Network)) })
	}
}

func TestCallAfterClose(t *testing.T) {
	l := listen(t)
	serve(t, l, map[string]handler{"Echo.Say": echo})
	closed, other := dial(t, l.Addr().String()), dial(t, l.Addr().String())
	for _, c := range []*anser.Client{closed, other} { // they share their connections
		if _, err := call(context.Background(), c, "Echo.Say", "hello"); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := call(context.Background(), closed, "Echo.Say", "hello")
	if e := wantFault(t, err, anser.Canceled, anser.NotSent); e.Message != "the client is closed" {
		t.Fatal(e.Message)
	}
	if _, err := call(context.Background(), other, "Echo.Say", "hello"); err != nil {
		t.Fatal(err)
	}
}

func TestCloseEndsACallThatWaitsForInstances(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		c := dial(t, "fed://arith", newFeed().scheme(), anser.Dialer(network.Dial))
		began := time.Now()
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello"), anser.Timeout(0))
		synctest.Wait()
		c.Close()
		_, err := reply.Wait()
		wantFault(t, err, anser.Canceled, anser.NotSent)
		if d := time.Since(began); d != 0 {
			t.Errorf("the call ended %v after Close", d)
		}
	})
}

func TestCloseEndsACallThatWaitsForItsNextAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		c := dial(t, "nobody:1", anser.Dialer(network.Dial))
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Say", text("hello"))
		synctest.Wait()
		c.Close()
		_, err := reply.Wait()
		wantFault(t, err, anser.Canceled, anser.NotSent)
	})
}

// A call whose context has ended before it begins is not sent.
func TestContextThatHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		if _, err := call(context.Background(), c, "Echo.Say", "connect"); err != nil {
			t.Fatal(err)
		}
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		expired, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		defer cancel()
		for ctx, code := range map[context.Context]anser.Code{cancelled: anser.Canceled, expired: anser.DeadlineExceeded} {
			for range 20 {
				_, err := call(ctx, c, "Echo.Say", "hello")
				wantFault(t, err, code, anser.NotSent)
				if !errors.Is(err, ctx.Err()) {
					t.Fatalf("%v is not %v", err, ctx.Err())
				}
			}
		}
		synctest.Wait()
		if n := s.Stats().Methods["Echo.Say"].Calls; n != 1 {
			t.Errorf("%d calls ran, want 1", n)
		}
	})
}

func TestNilContext(t *testing.T) {
	network := new(ansertest.Network)
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	//lint:ignore SA1012 the mistake is the test
	_, err := call(nil, c, "Echo.Say", "hello")
	if e := wantFault(t, err, anser.InvalidArgument, anser.NotSent); e.Message != "the context is nil: pass context.Background()" {
		t.Error(err)
	}
}

// The outcome of a failed call, in each situation, and the other fields of its error.
func TestOutcomes(t *testing.T) {
	type want struct {
		code    anser.Code
		outcome anser.Outcome
		phase   anser.Phase
		remote  bool
		text    string
	}
	scripted := func(f func(p *wirepeer.Peer, request wirepeer.Frame)) func(t *testing.T, network *ansertest.Network) {
		return func(t *testing.T, network *ansertest.Network) {
			rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
				if request, err := p.NextOf(wire.TypeRequest); err == nil {
					f(p, request)
				}
			})
		}
	}
	served := func(opts ...anser.ServerOption) func(t *testing.T, network *ansertest.Network) {
		return func(t *testing.T, network *ansertest.Network) {
			serve(t, network.Listen("a:1"), map[string]handler{
				"Echo.Say": echo,
				"Echo.Fail": func(context.Context, *[]byte) (*[]byte, error) {
					return nil, anser.Errorf(anser.NotFound, "no such thing")
				},
			}, opts...)
		}
	}
	for name, test := range map[string]struct {
		server func(t *testing.T, network *ansertest.Network)
		method string
		in     string
		opts   []anser.CallOption
		want   want
	}{
		"nobody listens": {
			server: func(*testing.T, *ansertest.Network) {},
			want:   want{anser.Unavailable, anser.NotSent, anser.PhaseDial, false, "no server is listening at a:1: start the server or correct the address"},
		},
		"no handshake": {
			server: func(t *testing.T, network *ansertest.Network) {
				l := network.Listen("a:1") // nothing accepts
				t.Cleanup(func() { l.Close() })
			},
			opts: []anser.CallOption{anser.WithFailMode(anser.Failfast)},
			want: want{anser.Unavailable, anser.NotSent, anser.PhaseDial, false, "handshake with a:1: no answer within 5s, is it an Anser server?"},
		},
		"time over while connecting": {
			server: func(t *testing.T, network *ansertest.Network) {
				l := network.Listen("a:1")
				t.Cleanup(func() { l.Close() })
			},
			opts: []anser.CallOption{anser.Timeout(time.Second)},
			want: want{anser.DeadlineExceeded, anser.NotSent, anser.PhaseDial, false, "no connection to a:1 yet"},
		},
		"time over while connecting again": {
			server: func(t *testing.T, network *ansertest.Network) {
				l := network.Listen("a:1")
				t.Cleanup(func() { l.Close() })
			},
			opts: []anser.CallOption{anser.Timeout(6 * time.Second)},
			want: want{anser.DeadlineExceeded, anser.NotSent, anser.PhaseDial, false, "and the last try failed: handshake with a:1"},
		},
		"not the protocol": {
			server: func(t *testing.T, network *ansertest.Network) {
				l := network.Listen("a:1")
				go func() {
					for {
						nc, err := l.Accept()
						if err != nil {
							return
						}
						nc.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
						nc.Close()
					}
				}()
				t.Cleanup(func() { l.Close() })
			},
			opts: []anser.CallOption{anser.WithFailMode(anser.Failfast)},
			want: want{anser.Unavailable, anser.NotSent, anser.PhaseDial, false, "not the Anser protocol"},
		},
		"too large for the server": {
			server: served(anser.MaxMessage(100)), method: "Echo.Say", in: strings.Repeat("x", 100_000),
			want: want{anser.ResourceExhausted, anser.NotSent, anser.PhaseWrite, false, "raise it with anser.MaxMessage on the server, or send less"},
		},
		"bad method name": {
			server: served(), method: "Echo\n.Say",
			want: want{anser.InvalidArgument, anser.NotSent, anser.PhaseEncode, false, "control character"},
		},
		"unknown method": {
			server: served(), method: "Echo.Sya",
			want: want{anser.Unimplemented, anser.Refused, anser.PhaseWait, true, `method "Echo.Sya" is not served here: did you mean "Echo.Say"?`},
		},
		"handler error": {
			server: served(), method: "Echo.Fail",
			want: want{anser.NotFound, anser.Executed, anser.PhaseWait, true, "no such thing"},
		},
		"lost while it ran": {
			server: scripted(func(p *wirepeer.Peer, _ wirepeer.Frame) { p.Close() }),
			want:   want{anser.Unavailable, anser.OutcomeUnknown, anser.PhaseWait, false, "the connection was lost: EOF"},
		},
		"closed with a reason": {
			server: scripted(func(p *wirepeer.Peer, _ wirepeer.Frame) {
				p.Send(wire.AppendClose(nil, wire.Overload, "too much to do"))
				p.Close()
			}),
			want: want{anser.Unavailable, anser.OutcomeUnknown, anser.PhaseWait, false, "too much to do (OVERLOAD)"},
		},
		"no answer": {
			server: scripted(func(p *wirepeer.Peer, _ wirepeer.Frame) { p.Next(); p.Next() }),
			opts:   []anser.CallOption{anser.Timeout(time.Second)},
			want:   want{anser.DeadlineExceeded, anser.OutcomeUnknown, anser.PhaseWait, false, "no reply within the call's time"},
		},
		"reply in another codec": {
			server: scripted(func(p *wirepeer.Peer, r wirepeer.Frame) {
				frame := wire.AppendReplyHead(nil, r.ID, 0, codec.JSONID, 0, nil)
				p.Send(frame)
				p.Next()
			}),
			want: want{anser.Internal, anser.OutcomeUnknown, anser.PhaseDecode, false, "the reply has the codec 3, the request had 1"},
		},
		"compressed reply": {
			server: scripted(func(p *wirepeer.Peer, r wirepeer.Frame) {
				p.Send(wire.AppendReplyHead(nil, r.ID, 0, codec.RawID, 1, nil))
				p.Next()
			}),
			want: want{anser.Internal, anser.OutcomeUnknown, anser.PhaseDecode, false, "the reply has the compression 1, which the request did not name"},
		},
		"error of an unknown kind": {
			server: scripted(func(p *wirepeer.Peer, r wirepeer.Frame) {
				p.Send(wirepeer.Fault(r.ID, wire.ErrorBody{Code: 99, Outcome: 99, Message: "?"}))
				p.Next()
			}),
			want: want{anser.Unknown, anser.OutcomeUnknown, anser.PhaseWait, true, "?"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				test.server(t, network)
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				if test.method == "" {
					test.method = "Echo.Say"
				}
				_, err := call(context.Background(), c, test.method, test.in, test.opts...)
				e := fault(t, err)
				got := want{e.Code, e.Outcome, e.Phase, e.Remote, test.want.text}
				if got != test.want || !strings.Contains(e.Message, test.want.text) {
					t.Errorf("%+v\n%s", got, e.Message)
				}
				if e.Phase != anser.PhaseEncode && e.Method != test.method {
					t.Errorf("method %q", e.Method)
				}
				if e.Phase > anser.PhasePick && e.Address != "a:1" {
					t.Errorf("address %q", e.Address)
				}
			})
		})
	}
}

// A cancelled call returns at once, and its handler learns of it at once.
func TestCancelReachesTheHandler(t *testing.T) {
	for name, opt := range map[string]anser.HandleOption{"inline": anser.Inline(), "concurrent": anser.Concurrent()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				inside, outside := make(chan struct{}), make(chan error, 1)
				s := anser.NewServer(silent)
				anser.Handle(s, "Echo.Wait", func(ctx context.Context, in *[]byte) (*[]byte, error) {
					close(inside)
					<-ctx.Done()
					outside <- ctx.Err()
					return in, nil
				}, opt)
				run(t, s, network.Listen("a:1"))
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				ctx, cancel := context.WithCancel(context.Background())
				reply := anser.Go[[]byte](ctx, c, "Echo.Wait", text(""))
				<-inside
				began := time.Now()
				cancel()
				_, err := reply.Wait()
				wantFault(t, err, anser.Canceled, anser.OutcomeUnknown)
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if d := time.Since(began); d != 0 {
					t.Errorf("the caller waited %v", d)
				}
				if err := <-outside; err != context.Canceled {
					t.Error(err)
				}
				if d := time.Since(began); d > 10*time.Millisecond {
					t.Errorf("the handler learned it after %v", d)
				}
				synctest.Wait()
				if st := s.Stats(); st.Cancelled != 1 || st.InFlight != 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// The reply object of a failed call belongs to the caller again, even if a reply arrives later.
func TestReplyIsNotWrittenAfterReturn(t *testing.T) {
	network := new(ansertest.Network)
	release := make(chan struct{})
	serve(t, network.Listen("a:1"), map[string]handler{
		"Echo.Late": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			<-ctx.Done() // answer as if it had not been cancelled
			<-release
			return in, nil
		},
		"Echo.Say": echo,
	})
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
	outs := make([][]byte, 20)
	for i := range outs {
		outs[i] = []byte("mine")
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- c.Call(ctx, "Echo.Late", text("theirs"), &outs[i]) }()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		outs[i][0] = 'M' // the race detector sees a write by another goroutine
	}
	close(release)
	for range 50 {
		if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
			t.Fatal(out, err)
		}
	}
	for _, out := range outs {
		if string(out) != "Mine" {
			t.Fatalf("a reply was written after its call: %q", out)
		}
	}
}

// A thousand calls that are cancelled at random moments leave nothing behind.
func TestRandomCancels(t *testing.T) {
	ansertest.CheckLeaks(t)
	l := listen(t)
	s := anser.NewServer(silent)
	pause := func(ctx context.Context, in *[]byte) (*[]byte, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(rand.IntN(2000)) * time.Microsecond):
			return in, nil
		}
	}
	anser.Handle(s, "Echo.Say", echo)
	anser.Handle(s, "Echo.Pause", pause)
	anser.Handle(s, "Echo.PauseThere", pause, anser.Concurrent())
	run(t, s, l)
	c := dial(t, l.Addr().String())
	methods := []string{"Echo.Say", "Echo.Pause", "Echo.PauseThere"}
	var wg sync.WaitGroup
	for g := range 20 {
		wg.Go(func() {
			for i := range 50 {
				ctx, cancel := context.WithCancel(context.Background())
				stop := time.AfterFunc(time.Duration(rand.IntN(1500))*time.Microsecond, cancel)
				in := fmt.Sprintf("%d.%d", g, i)
				out, err := call(ctx, c, methods[rand.IntN(len(methods))], in)
				if err == nil && out != in {
					t.Errorf("the reply to %s is %s", in, out)
				} else if err != nil && !errors.Is(err, anser.Canceled) {
					t.Error(err)
				}
				stop.Stop()
				cancel()
			}
		})
	}
	wg.Wait()
	eventually(t, "all calls have ended on the server", func() bool { return s.Stats().InFlight == 0 })
	if st := s.Stats(); st.Conns > 2 || st.Accepted > 2 || len(st.Closed) > 0 {
		t.Errorf("%+v", st)
	}
	for _, in := range c.Status().Instances {
		if in.Active != 0 {
			t.Errorf("%d calls are active", in.Active)
		}
	}
}

func TestFuture(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		release := make(chan struct{})
		serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				<-release
				return in, nil
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		f := anser.Method[[]byte, []byte]("Echo.Wait").Go(context.Background(), c, text("hello"))
		synctest.Wait()
		select {
		case <-f.Done():
			t.Fatal("done before the handler has returned")
		default:
		}
		close(release)
		<-f.Done()
		for range 2 {
			if out, err := f.Wait(); err != nil || string(*out) != "hello" {
				t.Fatal(err)
			}
		}
	})
}

// Closing a client ends its calls at once, with their outcomes.
func TestCloseEndsCallsInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				<-ctx.Done()
				return in, nil
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		plain := anser.Go[[]byte](context.Background(), c, "Echo.Wait", text(""))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		cancelable := anser.Go[[]byte](ctx, c, "Echo.Wait", text(""))
		synctest.Wait()
		began := time.Now()
		c.Close()
		for _, f := range []*anser.Future[[]byte]{plain, cancelable} {
			_, err := f.Wait()
			wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
		}
		if d := time.Since(began); d > 10*time.Millisecond {
			t.Errorf("closing took %v", d)
		}
	})
}
