package anser_test

import (
	"context"
	"errors"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// The time until a connection is made is not available to the handler.
func TestTimeoutShrinksWhileConnecting(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		left := make(chan time.Duration, 1)
		serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				deadline, _ := ctx.Deadline()
				left <- time.Until(deadline)
				return in, nil
			},
		})
		slow := anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			time.Sleep(3 * time.Second)
			return network.Dial(ctx, kind, address)
		})
		for _, withContext := range []bool{false, true} {
			c := dial(t, "a:1", slow, anser.Conns(1))
			ctx := context.Background()
			if withContext {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
			}
			if _, err := call(ctx, c, "Echo.Say", "hello"); err != nil {
				t.Fatal(err)
			}
			if d := <-left; d != 7*time.Second {
				t.Errorf("the handler has %v left, the caller 7 s", d)
			}
		}
	})
}

func TestDefaultTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		for want, opts := range map[time.Duration][]anser.DialOption{
			10 * time.Second: nil,
			3 * time.Second:  {anser.Timeout(3 * time.Second)},
		} {
			c := dial(t, "a:1", append(opts, anser.Dialer(network.Dial))...)
			began := time.Now()
			_, err := call(context.Background(), c, "Echo.Wait", "")
			if e := fault(t, err); e.Code != anser.DeadlineExceeded || !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if d := time.Since(began); d != want {
				t.Errorf("ended after %v, want %v", d, want)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second) // the caller's deadline wins
			began = time.Now()
			_, err = call(ctx, c, "Echo.Wait", "")
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 15*time.Second {
				t.Error(time.Since(began), err)
			}
		}
	})
}

func TestNoTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Slow": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				if _, ok := ctx.Deadline(); ok {
					t.Error("the handler has a deadline")
				}
				time.Sleep(time.Hour)
				return in, nil
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		if out, err := call(context.Background(), c, "Echo.Slow", "hello", anser.Timeout(0)); out != "hello" || err != nil {
			t.Fatal(out, err)
		}
	})
}

// A timeout of centuries is valid, although the wire has no room for it.
func TestLongestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Slow": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			time.Sleep(time.Hour)
			return in, ctx.Err()
		}})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		far, cancel := context.WithDeadline(context.Background(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
		defer cancel()
		for _, ctx := range []context.Context{context.Background(), far} {
			if out, err := call(ctx, c, "Echo.Slow", "hello", anser.Timeout(math.MaxInt64)); out != "hello" || err != nil {
				t.Error(out, err)
			}
		}
	})
}

// A computed timeout may have passed already; it must not become unlimited.
func TestNegativeTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		_, err := call(context.Background(), c, "Echo.Say", "hello", anser.Timeout(-time.Second))
		wantFault(t, err, anser.DeadlineExceeded, anser.NotSent)
		if !errors.Is(err, context.DeadlineExceeded) || s.Stats().Accepted != 0 {
			t.Error(err, s.Stats().Accepted)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = call(ctx, c, "Echo.Say", "hello", anser.Timeout(-time.Second))
		wantFault(t, err, anser.DeadlineExceeded, anser.NotSent)
	})
}

// A call with a Timeout of its own ends at the earlier of that and the deadline of its context,
// which may be that of the request that a handler serves. The servers learn the same.
func TestTimeoutAndDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		deadlines := make(chan time.Time, 2)
		wait := func(ctx context.Context, in *[]byte) (*[]byte, error) {
			d, _ := ctx.Deadline()
			deadlines <- d
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for _, address := range []string{"a:1", "b:1"} {
			serve(t, network.Listen(address), map[string]handler{"Echo.Wait": wait})
		}
		c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial), anser.Timeout(2*time.Second), anser.Idempotent(), anser.BackupShare(1), anser.Breaker{Off: true}, anser.OutlierDetection{Off: true})
		ways := map[string]struct {
			attempts int
			call     func(ctx context.Context, opts []anser.CallOption) error
		}{
			"Call": {1, func(ctx context.Context, opts []anser.CallOption) error {
				_, err := call(ctx, c, "Echo.Wait", "", opts...)
				return err
			}},
			"Go": {1, func(ctx context.Context, opts []anser.CallOption) error {
				_, err := anser.Go[[]byte](ctx, c, "Echo.Wait", text(""), opts...).Wait()
				return err
			}},
			"Fork": {2, func(ctx context.Context, opts []anser.CallOption) error {
				_, err := call(ctx, c, "Echo.Wait", "", append(opts, anser.WithFailMode(anser.Fork))...)
				return err
			}},
			"Backup": {2, func(ctx context.Context, opts []anser.CallOption) error {
				_, err := call(ctx, c, "Echo.Wait", "", append(opts, anser.WithFailMode(anser.Backup), anser.BackupAfter(time.Millisecond))...)
				return err
			}},
		}
		call(context.Background(), c, "Echo.Wait", "", anser.WithFailMode(anser.Fork), anser.Timeout(time.Second)) // connect
		for range 2 {
			<-deadlines
		}
		for name, way := range ways {
			for _, row := range []struct{ timeout, deadline, want time.Duration }{
				{3 * time.Second, 5 * time.Second, 3 * time.Second},
				{5 * time.Second, 3 * time.Second, 3 * time.Second},
				{0, 4 * time.Second, 4 * time.Second},
				{none, 4 * time.Second, 4 * time.Second}, // the timeout of the client is for calls without a deadline
			} {
				ctx, cancel := context.WithTimeout(context.Background(), row.deadline)
				var opts []anser.CallOption
				if row.timeout != none {
					opts = append(opts, anser.Timeout(row.timeout))
				}
				began := time.Now()
				err := way.call(ctx, opts)
				cancel()
				if e := fault(t, err); e.Code != anser.DeadlineExceeded || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s, %+v: %v", name, row, err)
				}
				if took := time.Since(began); took != row.want {
					t.Errorf("%s, %+v: it took %v", name, row, took)
				}
				synctest.Wait()
				if len(deadlines) != way.attempts {
					t.Errorf("%s, %+v: %d attempts, want %d", name, row, len(deadlines), way.attempts)
				}
				for range len(deadlines) {
					if d := (<-deadlines).Sub(began).Round(time.Millisecond); d != row.want {
						t.Errorf("%s, %+v: a server was given %v", name, row, d)
					}
				}
			}
		}
	})
}

// none is for the rows of calls without the option.
const none = -1

// The remaining time shrinks from hop to hop.
func TestDeadlineOfTwoHops(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		left := make(chan time.Duration, 2)
		note := func(ctx context.Context) {
			d, _ := ctx.Deadline()
			left <- time.Until(d)
		}
		serve(t, network.Listen("b:1"), map[string]handler{
			"Second.Hop": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				note(ctx)
				return in, nil
			},
		})
		second := dial(t, "b:1", anser.Dialer(network.Dial))
		serve(t, network.Listen("a:1"), map[string]handler{
			"First.Hop": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				note(ctx)
				time.Sleep(2 * time.Second)
				return anser.Call[[]byte](ctx, second, "Second.Hop", in)
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if out, err := call(ctx, c, "First.Hop", "hello"); out != "hello" || err != nil {
			t.Fatal(out, err)
		}
		if a, b := <-left, <-left; a != 5*time.Second || b != 3*time.Second {
			t.Errorf("the hops had %v and %v left", a, b)
		}
	})
}
