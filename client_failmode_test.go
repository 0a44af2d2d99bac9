package anser_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

func TestFailModeNames(t *testing.T) {
	for mode, want := range map[anser.FailMode]string{
		anser.Failover: "failover", anser.Failfast: "failfast", anser.Failtry: "failtry", anser.Failsafe: "failsafe",
		anser.Failback: "failback", anser.Backup: "backup", anser.Fork: "fork", 99: "unknown fail mode",
	} {
		if got := mode.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// reply answers with the address of the instance.
func reply(p *wirepeer.Peer, f wirepeer.Frame, address string, _ int) {
	p.Send(wirepeer.Reply(f.ID, []byte(address)))
}

// A missing instance is an error in every mode, as are mistakes of the caller.
func TestNoInstanceIsAnErrorInEveryMode(t *testing.T) {
	for mode := anser.Failover; mode <= anser.Fork; mode++ {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				f := newFeed()
				c := dial(t, "fed://x/arith", f.scheme(), anser.Dialer(network.Dial), anser.WithFailMode(mode), anser.Idempotent(), anser.Timeout(time.Second))
				_, err := call(context.Background(), c, "Echo.Say", "") // no list yet
				fault(t, err)
				f.list()
				_, err = call(context.Background(), c, "Echo.Say", "")
				if e := fault(t, err); e.Outcome != anser.NotSent || e.Code == anser.OK {
					t.Errorf("%+v", e)
				}
				if mode == anser.Backup || mode == anser.Fork {
					return // not for messages, see TestModesThatMakeNoSense
				}
				if err := anser.Send(context.Background(), c, "Echo.Say", text("")); err == nil {
					t.Error("a oneway message was sent to nobody")
				}
			})
		})
	}
	c := dial(t, "127.0.0.1:1", anser.WithFailMode(anser.Failsafe))
	if _, err := anser.Call[Reply](context.Background(), c, "bad\nname", &Args{}); err == nil {
		t.Error("a mistake was ignored")
	}
	if err := c.Call(context.Background(), "Echo.Say", make(chan int), new(Reply)); err == nil {
		t.Error("a request that cannot be encoded was ignored")
	}
	_, err := call(context.Background(), c, "Echo.Say", "", anser.WithFailMode(42))
	wantFault(t, err, anser.InvalidArgument, anser.NotSent)
}

func TestFailsafe(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var s service
		broken := func(p *wirepeer.Peer, f wirepeer.Frame, _ string, _ int) {
			frame := append(wire.AppendReplyHead(nil, f.ID, 0, 5, 0, nil), 0x81, 0xA1, 'C', 7, 0xC1) // C is 7, and then nonsense
			wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
			p.Send(frame)
		}
		var seen []error
		watch := anser.Intercept(func(next anser.Func) anser.Func {
			return func(ctx context.Context, inv *anser.Invocation) error {
				err := next(ctx, inv)
				seen = append(seen, err)
				return err
			}
		})
		var log strings.Builder
		s.serve(t, network, func(p *wirepeer.Peer, f wirepeer.Frame, a string, before int) {
			if before == 0 {
				execute(wire.Aborted)(p, f, a, before)
				return
			}
			broken(p, f, a, before)
		}, "a:1")
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Logger(slog.New(slog.NewTextHandler(&log, nil))), watch)
		for i := range 2 {
			out := &Reply{C: 5}
			if err := c.Call(context.Background(), "Arith.Mul", &Args{}, out, anser.WithFailMode(anser.Failsafe)); err != nil || out.C != 0 {
				t.Errorf("call %d: %v, reply %+v", i, err, out)
			}
		}
		if anser.CodeOf(seen[0]) != anser.Aborted || anser.CodeOf(seen[1]) != anser.Internal {
			t.Errorf("interceptors saw %v", seen)
		}
		if n := strings.Count(log.String(), "failsafe"); n != 1 || c.Status().Ignored != 2 { // the second within the minute
			t.Errorf("%d lines, %d errors counted, want 1 and 2: %s", n, c.Status().Ignored, &log)
		}
		f := anser.Go[Reply](context.Background(), c, "Arith.Mul", &Args{}, anser.WithFailMode(anser.Failsafe))
		if out, err := f.Wait(); err != nil || out.C != 0 {
			t.Error(out, err)
		}
	})
}

// A call with Failback returns at once, and is made in the background as soon as an instance
// exists.
func TestFailback(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Failback))
		in := text("first")
		began := time.Now()
		err := c.Call(context.Background(), "Echo.Say", in, new([]byte))
		e := wantFault(t, err, anser.Unavailable, anser.NotSent)
		if !errors.Is(err, anser.ErrQueued) || time.Since(began) > time.Second || !strings.Contains(e.Message, "queued to be tried again later: ") {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		copy(*in, "XXXXX") // it is the caller's again
		if err := anser.Send(context.Background(), c, "Echo.Say", text("message")); !errors.Is(err, anser.ErrQueued) {
			t.Error(err)
		}
		if st := c.Status().Failback; st.Waiting != 2 || st.Bytes != len("first")+len("message") || st.Queued != 2 {
			t.Errorf("%+v", st)
		}
		var mu sync.Mutex // guards the variables below
		var got []string
		var attempts []int
		serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				got, attempts = append(got, string(*in)), append(attempts, anser.AttemptFrom(ctx))
				return in, nil
			},
		}, anser.Logger(slog.New(slog.DiscardHandler)))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		slices.Sort(got)
		if !slices.Equal(got, []string{"first", "message"}) || slices.Min(attempts) < 1 {
			t.Error(got, attempts)
		}
		if st := c.Status().Failback; st.Waiting != 0 || st.Bytes != 0 || st.Done != 2 || st.GivenUp != 0 {
			t.Errorf("%+v", st)
		}
		if out, err := call(context.Background(), c, "Echo.Say", "direct"); out != "direct" || err != nil {
			t.Error(out, err)
		}
	})
}

// A call that must not be sent twice is not queued.
func TestFailbackQueuesWhatIsSafe(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(*wirepeer.Peer, wirepeer.Frame, string, int)
		opts   []anser.CallOption
		queued bool
	}{
		"unknown":                {drop, nil, false},
		"unknown, idempotent":    {drop, []anser.CallOption{anser.Idempotent()}, true},
		"unknown, key":           {drop, []anser.CallOption{anser.IdempotencyKey("k")}, false},
		"refused":                {refuse(wire.Unavailable, 0), nil, true},
		"overload":               {refuse(wire.ResourceExhausted, 0), nil, true},
		"never":                  {refuse(wire.ResourceExhausted, wire.RetryNever), nil, false},
		"refused, unknown":       {refuse(wire.Unimplemented, 0), nil, false},
		"executed":               {execute(wire.Aborted), []anser.CallOption{anser.Idempotent()}, false},
		"executed, listed":       {execute(wire.Aborted), []anser.CallOption{anser.Idempotent(), anser.RetryOn(anser.Aborted)}, true},
		"executed, listed, once": {execute(wire.Aborted), []anser.CallOption{anser.RetryOn(anser.Aborted)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var s service
				s.serve(t, network, test.answer, "a:1")
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				_, err := call(context.Background(), c, "Echo.Say", "", append(test.opts, anser.WithFailMode(anser.Failback))...)
				if fault(t, err); errors.Is(err, anser.ErrQueued) != test.queued {
					t.Errorf("%v, want it queued: %t", err, test.queued)
				}
				if asked, _, _ := s.tell(); len(asked) != 1 {
					t.Errorf("sent %d times before the call returned", len(asked))
				}
			})
		})
	}
}

func TestFailbackIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Failback),
			anser.FailbackQueue(anser.FailbackLimits{Calls: 3, Bytes: 10, Age: time.Minute}))
		for _, test := range []struct {
			in   string
			want error
		}{{"1234", anser.ErrQueued}, {"1234567", anser.ErrQueueFull}, {"1", anser.ErrQueued}, {"1", anser.ErrQueued}, {"1", anser.ErrQueueFull}} {
			if _, err := call(context.Background(), c, "Echo.Say", test.in); !errors.Is(err, test.want) || anser.CodeOf(err) != anser.Unavailable {
				t.Errorf("%q: %v, want %v", test.in, err, test.want)
			}
		}
		time.Sleep(3 * time.Minute)
		if st := c.Status().Failback; st != (anser.FailbackStats{Queued: 3, GivenUp: 3, Full: 2}) {
			t.Errorf("%+v", st)
		}
		for _, bad := range []anser.FailbackLimits{{Calls: -1}, {Bytes: -1}, {Age: -1}} {
			if _, err := anser.Dial("a:1", anser.FailbackQueue(bad)); err == nil {
				t.Errorf("%+v was taken", bad)
			}
		}
	})
}

// Close waits for the queued calls, but no longer than its limit.
func TestFailbackIsDrained(t *testing.T) {
	for name, up := range map[string]bool{"server is back": true, "server is gone": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				ran := 0
				l := network.Listen("a:1")
				hang := make(chan struct{})
				serve(t, l, map[string]handler{
					"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
						if ran++; ran == 1 {
							return nil, anser.Aborted
						}
						if !up {
							select {
							case <-hang:
							case <-ctx.Done():
							}
						}
						return in, nil
					},
				}, anser.Logger(slog.New(slog.DiscardHandler)))
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Idempotent(), anser.RetryOn(anser.Aborted))
				_, err := call(context.Background(), c, "Echo.Say", "", anser.WithFailMode(anser.Failback))
				if !errors.Is(err, anser.ErrQueued) {
					t.Fatal(err)
				}
				began := time.Now()
				c.Close()
				took := time.Since(began)
				st := c.Status().Failback
				if up && (st.Done != 1 || took > time.Second) {
					t.Errorf("%+v after %v", st, took)
				}
				if !up && (st.GivenUp != 1 || took < 2*time.Second || took > 3*time.Second) {
					t.Errorf("%+v after %v", st, took)
				}
				close(hang)
				if _, err := call(context.Background(), c, "Echo.Say", "", anser.WithFailMode(anser.Failback)); err == nil || errors.Is(err, anser.ErrQueued) {
					t.Errorf("a closed client: %v", err)
				}
			})
		})
	}
}

// The first reply wins, the other attempts are cancelled, and the call does not wait for them.
func TestFork(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var cancelled, ran atomic.Int32
		for i, address := range []string{"a:1", "b:1", "c:1"} {
			serve(t, network.Listen(address), map[string]handler{
				"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
					ran.Add(1)
					select {
					case <-time.After(time.Duration(i+1) * time.Second):
					case <-ctx.Done():
						cancelled.Add(1)
						return nil, ctx.Err()
					}
					return text(address), nil
				},
			}, anser.Logger(slog.New(slog.DiscardHandler)))
		}
		c := dial(t, "tcp://a:1,b:1,c:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Fork), anser.Forks(3))
		_, err := call(context.Background(), c, "Echo.Say", "")
		if e := wantFault(t, err, anser.InvalidArgument, anser.NotSent); !strings.Contains(e.Message, "anser.Idempotent") {
			t.Error(err)
		}
		began := time.Now()
		out, err := call(context.Background(), c, "Echo.Say", "", anser.Idempotent())
		if out != "a:1" || err != nil || time.Since(began) > 1100*time.Millisecond {
			t.Fatal(out, err, time.Since(began))
		}
		synctest.Wait()
		if ran.Load() != 3 || cancelled.Load() != 2 {
			t.Errorf("%d ran, %d were cancelled; want 3, 2", ran.Load(), cancelled.Load())
		}
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		if _, err = call(ctx, c, "Echo.Say", "", anser.Idempotent()); anser.CodeOf(err) != anser.DeadlineExceeded {
			t.Error(err)
		}
	})
}

// A failed attempt does not matter while another one answers; when all fail, the error lists them.
// Forks do not multiply from tier to tier: of the handlers that serve the same call, only the one
// of the first attempt forks its own calls.
func TestForksOfAChain(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ran atomic.Int32
		fork := []anser.DialOption{anser.Dialer(network.Dial), anser.WithFailMode(anser.Fork), anser.Forks(2), anser.Idempotent()}
		for _, address := range []string{"c:1", "d:1"} {
			serve(t, network.Listen(address), map[string]handler{
				"Echo.Say": func(_ context.Context, in *[]byte) (*[]byte, error) {
					ran.Add(1)
					time.Sleep(time.Second)
					return in, nil
				},
			})
		}
		below := dial(t, "tcp://c:1,d:1", fork...)
		for _, address := range []string{"a:1", "b:1"} {
			serve(t, network.Listen(address), map[string]handler{
				"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
					return anser.Call[[]byte](ctx, below, "Echo.Say", in)
				},
			})
		}
		if out, err := call(t.Context(), dial(t, "tcp://a:1,b:1", fork...), "Echo.Say", "hello"); out != "hello" || err != nil {
			t.Error(out, err)
		}
		if n := ran.Load(); n != 3 {
			t.Errorf("%d calls ran in the last tier, want 2 for the first attempt and 1 for the second", n)
		}
	})
}

func TestForkFailures(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var s service
		var good atomic.Bool
		good.Store(true)
		s.serve(t, network, func(p *wirepeer.Peer, f wirepeer.Frame, address string, _ int) {
			switch {
			case address == "a:1":
				p.Close()
			case address == "b:1":
				execute(wire.NotFound)(p, f, address, 0)
			case good.Load():
				time.Sleep(time.Second)
				reply(p, f, address, 0)
			default:
				refuse(wire.ResourceExhausted, wire.RetryNever)(p, f, address, 0)
			}
		}, "a:1", "b:1", "c:1")
		c := dial(t, "tcp://a:1,b:1,c:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Fork), anser.Forks(3), anser.Idempotent())
		if out, err := call(context.Background(), c, "Echo.Say", ""); out != "c:1" || err != nil {
			t.Fatal(out, err)
		}
		asked, tries, _ := s.tell()
		if slices.Sort(tries); !different(asked) || !slices.Equal(tries, []uint8{0, 1, 2}) {
			t.Error(asked, tries)
		}
		good.Store(false)
		_, err := call(context.Background(), c, "Echo.Say", "")
		e := wantFault(t, err, anser.NotFound, anser.Executed) // an error from a handler takes precedence
		if len(e.Attempts) != 3 {
			t.Errorf("%+v", e.Attempts)
		}
	})
}

// A call to one instance goes there and nowhere else.
func TestAt(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var s service
		s.serve(t, network, func(p *wirepeer.Peer, f wirepeer.Frame, address string, before int) {
			if before == 0 {
				p.Close()
				return
			}
			reply(p, f, address, before)
		}, "a:1", "b:1")
		c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial))
		list, err := c.Instances(context.Background())
		if err != nil || len(list) != 2 {
			t.Fatal(list, err)
		}
		for _, in := range append(list, list...) {
			if out, err := call(context.Background(), c, "Echo.Say", "", anser.At(in.Key()), anser.Idempotent()); out != in.Address || err != nil {
				t.Errorf("%q, %v; want %s", out, err, in.Address)
			}
		}
		_, err = call(context.Background(), c, "Echo.Say", "", anser.At("nobody"))
		if e := wantFault(t, err, anser.Unavailable, anser.NotSent); e.Phase != anser.PhasePick || !strings.Contains(e.Message, `"nobody"`) {
			t.Error(err)
		}
		if err := anser.Send(context.Background(), c, "Echo.Say", text(""), anser.At("nobody")); anser.CodeOf(err) != anser.Unavailable {
			t.Error(err)
		}
	})
}

// Modes and options that do not apply to a message or a stream are refused, unless they are the
// client's.
func TestModesThatMakeNoSense(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	ctx := context.Background()
	for _, opt := range []anser.CallOption{anser.WithFailMode(anser.Backup), anser.WithFailMode(anser.Fork), anser.IdempotencyKey("k")} {
		if err := anser.Send(ctx, c, "Echo.Say", text(""), opt); anser.CodeOf(err) != anser.InvalidArgument || anser.OutcomeOf(err) != anser.NotSent {
			t.Error(err)
		}
	}
	for _, opt := range []anser.CallOption{
		anser.WithFailMode(anser.Failsafe), anser.WithFailMode(anser.Failback), anser.WithFailMode(anser.Backup), anser.WithFailMode(anser.Fork), anser.IdempotencyKey("k"), anser.At("a:1"),
	} {
		if _, err := anser.Open[[]byte, []byte](ctx, c, "Echo.Stream", opt); anser.CodeOf(err) != anser.InvalidArgument {
			t.Error(err)
		}
	}
	for mode := anser.Failsafe; mode <= anser.Fork; mode++ {
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.WithFailMode(mode))
		if err := anser.Send(ctx, c, "Echo.Say", text("")); err != nil {
			t.Error(mode, err)
		}
		st, err := anser.Open[[]byte, []byte](ctx, c, "Echo.Stream")
		if err == nil {
			_, err = st.Recv()
		}
		if anser.CodeOf(err) != anser.Unimplemented {
			t.Error(mode, err)
		}
	}
}
