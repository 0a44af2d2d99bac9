package anser_test

import (
	"context"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A handler that blocks the reader goroutine does not delay the other calls of its connection,
// whether they arrived in the same read or later.
func TestBlockedHandlerIsHandedOff(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		release := make(chan struct{})
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Block", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			<-release
			return in, nil
		}, anser.Inline())
		anser.Handle(s, "Echo.Say", echo, anser.Inline())
		run(t, s, network.Listen("a:1"))
		p := rawClient(t, network, "a:1")
		began := time.Now()
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendMethod(nil, 2, "Echo.Block"),
			wirepeer.Request(1, 1, nil), wirepeer.Request(2, 2, []byte("late")), wirepeer.Request(3, 1, nil),
			wirepeer.Request(4, 2, []byte("late")), wirepeer.Request(5, 1, nil))
		for _, id := range []uint64{1, 3, 5} {
			if f, err := p.Next(); f.ID != id || f.Type != wire.TypeReply || err != nil {
				t.Fatalf("%s %d, %v; want the reply to %d", f.Type, f.ID, err, id)
			}
		}
		if d := time.Since(began); d > 10*time.Millisecond {
			t.Errorf("the others waited %v behind two that blocked", d)
		}
		if st := s.Stats(); st.Handoffs != 2 || st.InFlight != 2 {
			t.Errorf("%+v", st)
		}
		p.Send(wirepeer.Request(6, 1, nil))
		if f, err := p.Next(); f.ID != 6 || err != nil {
			t.Fatal(f.ID, err)
		}
		close(release)
		for range 2 {
			f, err := p.Next()
			if r, _ := wire.ParseReply(f.Flags, f.Body); f.ID != 2 && f.ID != 4 || string(r.Payload) != "late" || err != nil {
				t.Fatal(f.ID, string(r.Payload), err)
			}
		}
		synctest.Wait()
		if n := s.Stats().InFlight; n != 0 {
			t.Errorf("%d calls in flight", n)
		}
	})
}

// A handler that was handed off owns its buffers: the payloads and replies of other calls are not
// corrupted.
func TestHandoffKeepsBuffersApart(t *testing.T) {
	network := new(ansertest.Network)
	s := anser.NewServer(silent)
	anser.Handle(s, "Echo.Slow", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		time.Sleep(4 * time.Millisecond)
		// The monitor needs a processor too: if other goroutines use all of them, no handler is
		// handed off in that time.
		for end := time.Now().Add(time.Minute); s.Stats().Handoffs == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		return in, nil
	}, anser.Inline())
	anser.Handle(s, "Echo.Say", echo, anser.Inline())
	run(t, s, network.Listen("a:1"))
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Timeout(patience))
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 60 {
				method := "Echo.Say"
				if (g+i)%20 == 0 {
					method = "Echo.Slow"
				}
				in := make([]byte, (g*997+i*31)%9000)
				for j := range in {
					in[j] = byte(g*7 + i + j)
				}
				if out, err := call(context.Background(), c, method, string(in)); err != nil || out != string(in) {
					t.Errorf("%d bytes came back as %d, %v", len(in), len(out), err)
					return
				}
			}
		})
	}
	wg.Wait()
	if s.Stats().Handoffs == 0 {
		t.Error("no handler was handed off")
	}
}

// A handler that calls its own server does not deadlock, whichever client it uses.
func TestHandlerCallsItsOwnServer(t *testing.T) {
	for _, same := range []bool{true, false} {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			var second *anser.Client
			serve(t, network.Listen("a:1"), map[string]handler{
				"Echo.Say": echo,
				"Echo.Via": func(ctx context.Context, in *[]byte) (*[]byte, error) {
					if len(*in) > 3 {
						return anser.Call[[]byte](ctx, second, "Echo.Say", in)
					}
					deeper := append(*in, '.')
					return anser.Call[[]byte](ctx, second, "Echo.Via", &deeper)
				},
			})
			c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
			second = c
			if !same {
				second = dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
			}
			began := time.Now()
			out, err := call(context.Background(), c, "Echo.Via", "")
			if out != "...." || err != nil {
				t.Fatal(out, err)
			}
			if d := time.Since(began); d > 50*time.Millisecond {
				t.Errorf("four calls deep took %v", d)
			}
		})
	}
}

// The server learns that a handler which uses much processor time is slow, and then runs it on
// workers: several of one connection at once.
func TestBusyHandlersUseWorkers(t *testing.T) {
	l := listen(t)
	inFlight := make(chan int64, 1)
	s := anser.NewServer(silent)
	anser.Handle(s, "Burn.CPU", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		for end := time.Now().Add(100 * time.Microsecond); time.Now().Before(end); {
		}
		select {
		case inFlight <- s.Stats().InFlight:
		default:
		}
		return in, nil
	})
	run(t, s, l)
	c := dial(t, l.Addr().String(), anser.Conns(1))
	eventually(t, "the method runs on workers", func() bool {
		if _, err := call(context.Background(), c, "Burn.CPU", ""); err != nil {
			t.Fatal(err)
		}
		return <-inFlight > 0
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if _, err := call(context.Background(), c, "Burn.CPU", ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// A method that blocks repeatedly does not run on reader goroutines for a while.
func TestBlockingHandlersUseWorkers(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Slow": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			time.Sleep(20 * time.Millisecond)
			return in, nil
		}})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		for range 200 {
			if _, err := call(context.Background(), c, "Echo.Slow", ""); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.Stats().Handoffs; n == 0 || n > 100 {
			t.Errorf("%d of 200 calls were handed off", n)
		}
	})
}

// The server learns which methods delay the calls behind them repeatedly, however rarely that
// happens: after a few handoffs the method runs on workers, where no call waits behind it.
func TestRareBlockingIsLearned(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // waits while it marks would prove nothing
	for name, test := range map[string]struct {
		every  int // one in this many calls is special
		method func(c func() *anser.Client) handler
	}{
		"long runs": {1000, func(func() *anser.Client) handler {
			return func(_ context.Context, in *[]byte) (*[]byte, error) {
				if string(*in) == "special" {
					time.Sleep(6 * time.Millisecond)
				}
				return in, nil
			}
		}},
		// The call that unlocks is behind the one that waits for it, on the same connection.
		"a lock": {1000, func(func() *anser.Client) handler {
			unlock := make(chan struct{})
			return func(_ context.Context, in *[]byte) (*[]byte, error) {
				switch string(*in) {
				case "special":
					<-unlock
				case "after":
					unlock <- struct{}{}
				}
				return in, nil
			}
		}},
		"calls to oneself": {1000, func(c func() *anser.Client) handler {
			return func(ctx context.Context, in *[]byte) (*[]byte, error) {
				if string(*in) == "special" {
					return anser.Call[[]byte](ctx, c(), "Echo.Say", text("inner"))
				}
				return in, nil
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var c *anser.Client
				s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": test.method(func() *anser.Client { return c })})
				c = dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
				const rounds = 12
				late := 0 // rounds in which a call waited
				for range rounds {
					for range test.every - 2 {
						if _, err := call(t.Context(), c, "Echo.Say", ""); err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Millisecond)
					}
					special := apart(t.Context(), c, "Echo.Say", text("special"))
					synctest.Wait()
					began := time.Now()
					if _, err := call(t.Context(), c, "Echo.Say", "after"); err != nil {
						t.Fatal(err)
					}
					if time.Since(began) > 0 {
						late++
					}
					if _, err := special.Wait(); err != nil {
						t.Fatal(err)
					}
				}
				if n := s.Stats().Handoffs; n > 5 || late > 5 {
					t.Errorf("%d handoffs, and a call waited in %d of %d rounds", n, late, rounds)
				}
			})
		})
	}
}

// Idle workers end after a while, and more of them are started at once when needed.
func TestWorkersComeAndGo(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := anser.NewServer(silent)
		inside, release := make(chan struct{}), make(chan struct{})
		anser.Handle(s, "Echo.Wait", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			inside <- struct{}{}
			<-release
			return in, nil
		}, anser.Concurrent())
		run(t, s, network.Listen("a:1"))
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		for round := range 3 {
			var calls []*anser.Future[[]byte]
			for range 100 {
				calls = append(calls, anser.Go[[]byte](context.Background(), c, "Echo.Wait", text("")))
			}
			for range 100 {
				<-inside
			}
			synctest.Wait() // a call is counted until shortly after its caller has the reply
			if n := s.Stats().InFlight; n != 100 {
				t.Errorf("%d in flight, want 100", n)
			}
			for range 100 {
				release <- struct{}{}
			}
			for _, f := range calls {
				if _, err := f.Wait(); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(time.Duration(round) * time.Minute)
		}
	})
}
