package anser_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// If no instance can be reached, every kind of call fails with the same error: at its deadline,
// and when its caller gives up.
func TestEveryWayToCallFailsAlike(t *testing.T) {
	for name, test := range map[string]struct {
		silent func(i int) bool // instance i listens and does not answer; the others refuse
		cancel bool
		code   anser.Code
	}{
		"silent":              {func(int) bool { return true }, false, anser.DeadlineExceeded},
		"refusing":            {func(int) bool { return false }, false, anser.Unavailable},
		"silent and refusing": {func(i int) bool { return i%2 == 0 }, false, anser.DeadlineExceeded},
		"silent, cancelled":   {func(int) bool { return true }, true, anser.Canceled},
		"refusing, cancelled": {func(int) bool { return false }, true, anser.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 2, 5} {
				inTime(t, func(t *testing.T, network *ansertest.Network) {
					var addresses []string
					for i := range n {
						addresses = append(addresses, fmt.Sprintf("a%d:1", i))
						if test.silent(i) {
							defer network.Listen(addresses[i]).Close()
						}
					}
					for name, way := range ways {
						if name == "Fork" && n > 1 { // its error is that of one attempt of several
							continue
						}
						c := dial(t, "tcp://"+strings.Join(addresses, ","), anser.Dialer(network.Dial))
						ctx, cancel := context.WithTimeout(context.Background(), time.Second)
						if test.cancel {
							time.AfterFunc(500*time.Millisecond, cancel)
						}
						err := way(ctx, c)
						if e := wantFault(t, err, test.code, anser.NotSent); e.Phase != anser.PhaseDial {
							t.Errorf("%s with %d instances failed in the phase %q: %v", name, n, e.Phase, err)
						}
						cancel()
						c.Close()
					}
				})
			}
		})
	}
}

// refuseFirst refuses the first attempt of each call and does not answer the second one.
func refuseFirst(p *wirepeer.Peer, f wirepeer.Frame, _ string, _ int) {
	var r wire.Request
	if wire.ParseRequest(f.Flags, f.Body, &r); r.Attempt == 0 {
		p.Send(wirepeer.Fault(f.ID, wire.ErrorBody{Code: wire.Unavailable, Outcome: wire.Refused, Message: "refused"}))
	}
}

// The further attempts of futures cost no goroutine either, and end with the time of the call.
func TestFurtherAttemptsOfFutures(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var s service
		s.serve(t, network, refuseFirst, "a:1", "b:1")
		c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial))
		synctest.Wait()
		const calls = 100
		var futures []*anser.Future[[]byte]
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithCancel(context.Background())
		for i := range calls {
			called := context.Background()
			if i%2 == 0 {
				called = ctx
			}
			futures = append(futures, anser.Go[[]byte](called, c, "Echo.Say", text(""), anser.Timeout(time.Second)))
		}
		time.Sleep(500 * time.Millisecond)
		if asked, _, _ := s.tell(); len(asked) != 2*calls {
			t.Errorf("%d requests of %d calls, want two of each", len(asked), calls)
		}
		if n := runtime.NumGoroutine() - before; n > calls/2 {
			t.Errorf("%d goroutines for %d calls", n, calls)
		}
		cancel()
		began := time.Now()
		for i, f := range futures {
			want := anser.DeadlineExceeded
			if i%2 == 0 {
				want = anser.Canceled
			}
			_, err := f.Wait()
			if e := wantFault(t, err, want, anser.OutcomeUnknown); len(e.Attempts) != 2 || e.Attempt != 1 || e.Method != "Echo.Say" {
				t.Errorf("attempt %d of %+v: %v", e.Attempt, e.Attempts, err)
			}
		}
		if d := time.Since(began); d > 510*time.Millisecond {
			t.Errorf("the calls ended after %v", d)
		}
	})
}

// A stream that cannot be opened in time says nothing about the speed of its instance.
func TestStreamThatIsNotOpenedIsNoLatency(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		rawServer(t, network.Listen("a:1"), func(*wirepeer.Peer) { time.Sleep(time.Minute) })
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.WriteStall(time.Minute))
		big := make([]byte, 3<<20)
		for range 2 { // the server reads none of them, so one is being written and one waits
			if err := anser.Send(context.Background(), c, "Echo.Say", &big); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := anser.Open[[]byte, []byte](ctx, c, "Echo.Stream")
		wantFault(t, err, anser.DeadlineExceeded, anser.NotSent)
		if d := c.Status().Instances[0].Latency; d > time.Minute {
			t.Errorf("a latency of %v", d)
		}
	})
}

// Nor does a stream that its handler ends with an error.
func TestStreamThatFailsIsNotSlow(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var addresses []string
		for i := range 5 {
			address := fmt.Sprintf("a%d:1", i)
			s := anser.NewServer(silent)
			anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) {
				time.Sleep(time.Millisecond)
				return in, nil
			})
			anser.HandleStream(s, "Echo.Stream", func(context.Context, *anser.Stream[[]byte, []byte]) error {
				if i == 0 {
					return anser.NotFound
				}
				return nil
			})
			run(t, s, network.Listen(address))
			addresses = append(addresses, address)
		}
		c := dial(t, "tcp://"+strings.Join(addresses, ","), anser.Dialer(network.Dial), anser.Conns(1),
			anser.Balancer(balance.RoundRobin()), anser.OutlierDetection{Slow: 5})
		for i := range 1000 {
			if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
			if i%500 != 0 {
				continue
			}
			for range addresses {
				if s, err := anser.Open[[]byte, []byte](context.Background(), c, "Echo.Stream"); err == nil {
					s.Recv()
				}
			}
		}
		for _, in := range c.Status().Instances {
			if in.Ejected != "" {
				t.Errorf("%s is ejected: %s", in.Address, in.Ejected)
			}
		}
	})
}

// A message for one instance does not take a turn of the balancer.
func TestSendToAnInstanceDoesNotPick(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		picks := &counting{Balancer: balance.RoundRobin()}
		for _, address := range []string{"a:1", "b:1"} {
			serve(t, network.Listen(address), map[string]handler{"Echo.Say": echo})
		}
		c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial), anser.Balancer(picks))
		list, err := c.Instances(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := anser.Send(context.Background(), c, "Echo.Say", text(""), anser.At(list[0].Key())); err != nil {
				t.Fatal(err)
			}
		}
		if n := picks.n.Load(); n != 0 {
			t.Errorf("%d picks", n)
		}
	})
}
