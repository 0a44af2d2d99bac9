package anser_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// countOnce serves Count.Up, which counts how often it ran.
func countOnce(t *testing.T, network *ansertest.Network, address string, ran *atomic.Int32, take time.Duration, opts ...anser.ServerOption) *anser.Server {
	return countOn(t, network.Listen(address), ran, take, opts...)
}

// countOn is countOnce with a listener.
func countOn(t *testing.T, l net.Listener, ran *atomic.Int32, take time.Duration, opts ...anser.ServerOption) *anser.Server {
	return serve(t, l, map[string]handler{
		"Count.Up": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			n := ran.Add(1)
			select {
			case <-time.After(take):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			anser.SetTrailer(ctx, "key", anser.IdempotencyKeyFrom(ctx))
			if v := anser.MetadataValue(ctx, wire.IdempotencyKey) + anser.MetadataFrom(ctx)[wire.IdempotencyKey]; v != "" {
				t.Errorf("%q is metadata of the call", v)
			}
			switch {
			case string(*in) == "fail":
				return nil, anser.Errorf(anser.NotFound, "run %d", n)
			case string(*in) == "refuse":
				return nil, anser.Refuse(anser.Unavailable, "run %d", n).WithRetryAfter(anser.RetryNever)
			case string(*in) == "panic":
				panic("on purpose")
			case string(*in) == "exit":
				runtime.Goexit()
			}
			if string(*in) == "long" {
				n *= 15
			}
			return text(strings.Repeat("x", int(n)*100)), nil
		},
	}, append([]anser.ServerOption{anser.Deduplicate()}, opts...)...)
}

// The same call with the same key runs once, and gets the same answer each time.
func TestIdempotencyKey(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ran atomic.Int32
		s := countOnce(t, network, "a:1", &ran, 0)
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		ctx := anser.WithMetadata(context.Background(), anser.Metadata{"user": "ann"})
		for i := range 3 {
			var md anser.Metadata
			out, err := call(ctx, c, "Count.Up", "", anser.IdempotencyKey("one"), anser.Trailer(&md))
			if len(out) != 100 || err != nil || md.Get("key") != "one" {
				t.Errorf("call %d: %q, %v, trailers %v", i, out, err, md)
			}
		}
		out, err := call(ctx, c, "Count.Up", "", anser.IdempotencyKey("two"))
		if len(out) != 200 || err != nil {
			t.Error(len(out), err)
		}
		for range 2 {
			out, err := call(ctx, c, "Count.Up", "", anser.IdempotencyKey("packed"), anser.Compress(compress.Gzip(), anser.Forced))
			if len(out) != 300 || err != nil {
				t.Error(len(out), err)
			}
			_, err = call(ctx, c, "Count.Up", "fail", anser.IdempotencyKey("error"))
			if e := wantFault(t, err, anser.NotFound, anser.Executed); e.Message != "run 4" {
				t.Error(err)
			}
		}
		if n := s.Stats().Replayed; ran.Load() != 4 || n != 4 {
			t.Errorf("ran %d times, %d answered from memory; want 4, 4", ran.Load(), n)
		}
		_, err = call(ctx, c, "Count.Up", "else", anser.IdempotencyKey("one"))
		wantFault(t, err, anser.FailedPrecondition, anser.Refused)
		for range 2 { // what was refused did not run
			_, err = call(ctx, c, "Count.Up", "refuse", anser.IdempotencyKey("refused"))
			wantFault(t, err, anser.Unavailable, anser.Refused)
		}
		if ran.Load() != 6 {
			t.Errorf("ran %d times, want 6", ran.Load())
		}
		for _, in := range []string{"panic", "exit"} {
			for range 2 {
				_, err = call(ctx, c, "Count.Up", in, anser.IdempotencyKey(in))
				wantFault(t, err, anser.Internal, anser.Executed)
			}
		}
		if ran.Load() != 8 {
			t.Errorf("ran %d times, want 8", ran.Load())
		}
	})
}

// Two at once are one.
func TestConcurrentDuplicatesWait(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ran atomic.Int32
		countOnce(t, network, "a:1", &ran, time.Second)
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		var all []*anser.Future[[]byte]
		for range 10 {
			all = append(all, anser.Go[[]byte](context.Background(), c, "Count.Up", text(""), anser.IdempotencyKey("k")))
		}
		time.Sleep(time.Millisecond) // one of those is the first
		impatient, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		_, err := call(impatient, c, "Count.Up", "", anser.IdempotencyKey("k"))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for _, f := range all {
			if out, err := f.Wait(); err != nil || len(*out) != 100 {
				t.Error(err)
			}
		}
		if ran.Load() != 1 {
			t.Errorf("ran %d times", ran.Load())
		}
	})
}

// A call whose connection is lost is found again, at the same instance, over another connection;
// its handler was not disturbed.
func TestKeySurvivesALostConnection(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ran, other atomic.Int32
		countOnce(t, network, "a:1", &ran, 3*time.Second)
		countOnce(t, network, "b:1", &other, 3*time.Second)
		conns := make(chan func(), 10)
		c := dial(t, "tcp://a:1,b:1", anser.Balancer(inOrder{}), anser.Dialer(losing(network, conns)))
		began := time.Now()
		time.AfterFunc(time.Second, func() { (<-conns)() })
		out, err := call(context.Background(), c, "Count.Up", "", anser.IdempotencyKey("k"))
		if len(out) != 100 || err != nil {
			t.Fatal(out, err)
		}
		if ran.Load() != 1 || other.Load() != 0 || time.Since(began) > 3500*time.Millisecond {
			t.Errorf("ran %d times, %d elsewhere, in %v", ran.Load(), other.Load(), time.Since(began))
		}
	})
}

// A server that remembers nothing does not run a call with a key, so that no caller relies on it.
func TestKeyWithoutMemoryIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ran atomic.Int32
		h := func(_ context.Context, in *[]byte) (*[]byte, error) { ran.Add(1); return in, nil }
		s := anser.NewServer(silent)
		anser.Handle(s, "Plain.Do", h)
		anser.Handle(s, "Once.Do", h, anser.Deduplicate())
		run(t, s, network.Listen("a:1"))
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		_, err := call(context.Background(), c, "Plain.Do", "", anser.IdempotencyKey("k"))
		if e := wantFault(t, err, anser.Unimplemented, anser.Refused); !strings.Contains(e.Message, "anser.Deduplicate") || ran.Load() != 0 {
			t.Error(err)
		}
		for range 2 {
			if _, err := call(context.Background(), c, "Once.Do", "", anser.IdempotencyKey("k")); err != nil {
				t.Error(err)
			}
		}
		if ran.Load() != 1 {
			t.Errorf("ran %d times", ran.Load())
		}
		for _, key := range []string{"", "a b", strings.Repeat("k", 129)} {
			_, err := call(context.Background(), c, "Once.Do", "", anser.IdempotencyKey(key))
			wantFault(t, err, anser.InvalidArgument, anser.NotSent)
		}
		_, err = call(anser.WithMetadata(context.Background(), anser.Metadata{wire.IdempotencyKey: "k"}), c, "Once.Do", "")
		wantFault(t, err, anser.InvalidArgument, anser.NotSent)
	})
	streams := anser.NewServer(silent)
	if err := anser.HandleStream(streams, "Once.Stream", func(context.Context, *anser.Stream[[]byte, []byte]) error { return nil }, anser.Deduplicate()); err == nil {
		t.Error("a stream took anser.Deduplicate")
	}
}

// The memory is bounded: in calls, in bytes, where the key outlives the reply, and in time.
func TestReplyMemoryIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		limits anser.ReplyCacheLimits
		wait   time.Duration
		ran    int32 // after the first of three calls was repeated
		code   anser.Code
	}{
		"enough":     {anser.ReplyCacheLimits{}, 0, 3, anser.OK},
		"bytes":      {anser.ReplyCacheLimits{Bytes: 4 << 10}, 0, 3, anser.DataLoss},
		"young":      {anser.ReplyCacheLimits{Age: time.Minute}, 59 * time.Second, 3, anser.OK},
		"old":        {anser.ReplyCacheLimits{Age: time.Minute}, 3 * time.Minute, 4, anser.OK},
		"by default": {anser.ReplyCacheLimits{}, 299 * time.Second, 3, anser.OK},
		"forgotten":  {anser.ReplyCacheLimits{}, 8 * time.Minute, 4, anser.OK},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var ran atomic.Int32
				countOnce(t, network, "a:1", &ran, 0, anser.ReplyCache(test.limits))
				c := dial(t, "a:1", anser.Dialer(network.Dial))
				for _, key := range []string{"a", "b", "c"} {
					if _, err := call(context.Background(), c, "Count.Up", "long", anser.IdempotencyKey(key)); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(test.wait)
				_, err := call(context.Background(), c, "Count.Up", "long", anser.IdempotencyKey("a"))
				if anser.CodeOf(err) != test.code || ran.Load() != test.ran {
					t.Errorf("%v, ran %d times; want %s, %d", err, ran.Load(), test.code, test.ran)
				}
				if err != nil {
					wantFault(t, err, test.code, anser.Executed)
				}
			})
		})
	}
}

// One client that uses keys as fast as it can is refused at some point. It makes the server forget
// no key of another client, and leaves room for its new ones.
func TestKeysOfANeighbour(t *testing.T) {
	l := listen(t)
	var ran sync.Map // by key: *atomic.Int32
	s := serve(t, l, map[string]handler{"Count.Up": func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		n, _ := ran.LoadOrStore(anser.IdempotencyKeyFrom(ctx), new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		return text("done"), nil
	}}, anser.Authenticate(new(door)), anser.Deduplicate(), anser.ReplyCache(anser.ReplyCacheLimits{Bytes: 64 << 10}))
	ann := dial(t, l.Addr().String(), showing("ann"))
	bob := dial(t, l.Addr().String(), showing("bob"))
	pay := func(c *anser.Client, key string) error {
		_, err := call(context.Background(), c, "Count.Up", "", anser.IdempotencyKey(key), anser.Attempts(1))
		return err
	}
	for i := range 20 {
		if err := pay(ann, fmt.Sprint("ann-", i)); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for i := range 1500 {
		if err := pay(bob, fmt.Sprint("bob-", i)); err != nil {
			wantFault(t, err, anser.ResourceExhausted, anser.Refused)
			refused++
		}
	}
	for i := range 30 { // 20 of them again
		if err := pay(ann, fmt.Sprint("ann-", i)); err != nil && anser.CodeOf(err) != anser.DataLoss {
			t.Errorf("ann-%d: %v", i, err)
		}
	}
	ran.Range(func(key, n any) bool {
		if n := n.(*atomic.Int32).Load(); n != 1 {
			t.Errorf("%s ran %d times", key, n)
		}
		return true
	})
	st := s.Stats()
	if refused == 0 || st.LimitsHit["ReplyCache"] != int64(refused) {
		t.Errorf("%d calls were refused, and the server counts %d", refused, st.LimitsHit["ReplyCache"])
	}
	if k := st.Keys; k.Known != int64(30+1500-refused) || k.Clients != 2 || k.Bytes > 64<<10 {
		t.Errorf("%+v, after %d refusals", k, refused)
	}
}

// A server that is started again at the same address does not know what ran before: nothing is
// sent to it again.
func TestKeyAtAnotherLife(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ran, other atomic.Int32
		l := network.Listen("a:1")
		countOn(t, l, &ran, time.Hour)
		conns := make(chan func(), 10)
		c := dial(t, "a:1", anser.Dialer(losing(network, conns)))
		reply := anser.Go[[]byte](context.Background(), c, "Count.Up", text(""), anser.IdempotencyKey("k"))
		time.Sleep(time.Second)
		l.Close() // as with kill: clients are not notified
		(<-conns)()
		countOnce(t, network, "a:1", &other, 0)
		_, err := reply.Wait()
		e := wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
		if ran.Load() != 1 || other.Load() != 0 {
			t.Errorf("ran %d times, and %d times in the next life: %v", ran.Load(), other.Load(), e)
		}
		// The next life serves calls with new keys.
		if _, err := call(context.Background(), c, "Count.Up", "", anser.IdempotencyKey("new")); err != nil {
			t.Error(err)
		}
	})
}

// A key is not sent again later than the server promises to know it.
func TestKeyThatMayBeForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ran atomic.Int32
		countOnce(t, network, "a:1", &ran, time.Hour, anser.ReplyCache(anser.ReplyCacheLimits{Age: time.Minute}))
		conns := make(chan func(), 10)
		c := dial(t, "a:1", anser.Dialer(losing(network, conns)), anser.Timeout(10*time.Minute))
		time.AfterFunc(61*time.Second, func() { (<-conns)() })
		_, err := call(context.Background(), c, "Count.Up", "", anser.IdempotencyKey("k"))
		e := wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
		if ran.Load() != 1 || !strings.Contains(e.Message, "ReplyCache") {
			t.Errorf("ran %d times: %v", ran.Load(), err)
		}
	})
}

// A call that outlived its connection does not outlive its server.
func TestCloseEndsCallsWithKeys(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ran atomic.Int32
		s := countOnce(t, network, "a:1", &ran, time.Hour)
		conns := make(chan func(), 10)
		c := dial(t, "a:1", anser.Dialer(losing(network, conns)), anser.Timeout(0))
		f := anser.Go[[]byte](context.Background(), c, "Count.Up", text(""), anser.IdempotencyKey("k"), anser.Attempts(1))
		time.Sleep(time.Millisecond)
		(<-conns)()
		synctest.Wait()
		began := time.Now()
		if err := s.Close(); err != nil || time.Since(began) > time.Second {
			t.Error(err, time.Since(began))
		}
		_, err := f.Wait()
		fault(t, err)
	})
}

// An unknown outcome is asked for at the instance that knows, within the attempts and the budget.
func TestUnknownOutcomeWithAKey(t *testing.T) {
	for name, test := range map[string]struct {
		opts []anser.DialOption
		sent int
	}{
		"three attempts": {nil, 3}, "no budget": {[]anser.DialOption{anser.RetryBudget(0, 0)}, 1}, "failfast": {[]anser.DialOption{anser.WithFailMode(anser.Failfast)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var s service
				s.serve(t, network, drop, "a:1", "b:1", "c:1")
				c := dial(t, "tcp://a:1,b:1,c:1", append(test.opts, anser.Dialer(network.Dial))...)
				_, err := call(context.Background(), c, "Echo.Say", "", anser.IdempotencyKey("k"))
				wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
				asked, _, _ := s.tell()
				for _, a := range asked {
					if a != asked[0] {
						t.Errorf("asked %v, want one instance", asked)
					}
				}
				if len(asked) != test.sent {
					t.Errorf("sent %d times, want %d", len(asked), test.sent)
				}
			})
		})
	}
	bubble(t, func(t *testing.T, network *ansertest.Network) { // the instance goes away with what it knows
		f := newFeed()
		var s service
		s.serve(t, network, func(p *wirepeer.Peer, _ wirepeer.Frame, _ string, _ int) { p.Close() }, "a:1", "b:1", "c:1")
		c := dial(t, "fed://x/arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(inOrder{}))
		f.list("a:1", "b:1", "c:1")
		reply := anser.Go[[]byte](context.Background(), c, "Echo.Say", text(""), anser.IdempotencyKey("k"), anser.Attempts(5))
		time.Sleep(time.Millisecond)
		f.list("b:1", "c:1")
		_, err := reply.Wait()
		e := wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
		if asked, _, _ := s.tell(); !(len(asked) >= 1) || strings.Contains(strings.Join(asked, " "), "b:1") {
			t.Errorf("asked %v: %v", asked, e)
		}
	})
}

// A key holds for idempotent methods as well: what may have run, or has, is sent to no other life.
func TestKeyOfAnIdempotentMethodAtAnotherLife(t *testing.T) {
	for name, test := range map[string]struct {
		opts    []anser.CallOption
		fails   bool // else its connection is lost
		code    anser.Code
		outcome anser.Outcome
	}{
		"failover": {nil, false, anser.Unavailable, anser.OutcomeUnknown},
		"backup":   {[]anser.CallOption{anser.WithFailMode(anser.Backup), anser.BackupAfter(time.Millisecond)}, false, anser.Unavailable, anser.OutcomeUnknown},
		"executed": {[]anser.CallOption{anser.RetryOn(anser.NotFound)}, true, anser.NotFound, anser.Executed},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var ran, other atomic.Int32
				l := network.Listen("a:1")
				take, in := time.Hour, ""
				if test.fails {
					take, in = 0, "fail"
				}
				countOn(t, l, &ran, take)
				countOnce(t, network, "b:1", &other, 0)
				conns := make(chan func(), 10)
				c := dial(t, "tcp://a:1,b:1", anser.Balancer(inOrder{}), anser.Dialer(losing(network, conns)), anser.RetryBudget(1, 100))
				reply := anser.Go[[]byte](context.Background(), c, "Count.Up", text(in),
					append(test.opts, anser.IdempotencyKey("k"), anser.Idempotent())...)
				if !test.fails {
					time.Sleep(time.Second)
					l.Close()
					(<-conns)()
					countOnce(t, network, "a:1", &other, 0)
				}
				_, err := reply.Wait()
				wantFault(t, err, test.code, test.outcome)
				if ran.Load() != 1 || other.Load() != 0 {
					t.Errorf("ran %d times, and %d times at another life: %v", ran.Load(), other.Load(), err)
				}
			})
		})
	}
}

// A call with a key goes to one instance: forks of it would run once at each.
func TestKeyWithFork(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var ran atomic.Int32
		for _, address := range []string{"a:1", "b:1"} {
			countOnce(t, network, address, &ran, 0)
		}
		c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial))
		_, err := call(context.Background(), c, "Count.Up", "", anser.IdempotencyKey("k"), anser.Idempotent(), anser.WithFailMode(anser.Fork))
		if e := wantFault(t, err, anser.InvalidArgument, anser.NotSent); !strings.Contains(e.Message, "IdempotencyKey") || ran.Load() != 0 {
			t.Errorf("ran %d times: %v", ran.Load(), err)
		}
	})
}
