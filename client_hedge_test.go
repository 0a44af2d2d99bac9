package anser_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/wire"
)

// pace is a service whose instances take as long as the test says, and reply with their names.
type pace struct {
	mu        sync.Mutex
	take      map[string]time.Duration
	fail      map[string]error
	ran       []string
	attempts  []int
	cancelled []string
}

func (p *pace) serve(t *testing.T, network *ansertest.Network, addresses ...string) {
	p.take, p.fail = make(map[string]time.Duration), make(map[string]error)
	for _, address := range addresses {
		serve(t, network.Listen(address), map[string]handler{
			"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				p.mu.Lock()
				take, fail := p.take[address], p.fail[address]
				p.ran, p.attempts = append(p.ran, address), append(p.attempts, anser.AttemptFrom(ctx))
				p.mu.Unlock()
				if take > 0 {
					select {
					case <-time.After(take):
					case <-ctx.Done():
						p.mu.Lock()
						p.cancelled = append(p.cancelled, address)
						p.mu.Unlock()
						return nil, ctx.Err()
					}
				}
				return text(address), fail
			},
		})
	}
}

func (p *pace) set(address string, take time.Duration, fail error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take[address], p.fail[address] = take, fail
}

func (p *pace) tell() (ran []string, attempts []int, cancelled []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ran, attempts, cancelled = p.ran, p.attempts, p.cancelled
	p.ran, p.attempts, p.cancelled = nil, nil, nil
	return ran, attempts, cancelled
}

// inOrder is a balancer that takes the first instance that was not tried.
type inOrder struct{}

func (inOrder) Name() string                                       { return "in_order" }
func (inOrder) Build(endpoints []*balance.Endpoint) balance.Picker { return ordered(endpoints) }

type ordered []*balance.Endpoint

func (o ordered) Pick(r *balance.Request) *balance.Endpoint {
	for _, e := range o {
		if !r.HasTried(e) {
			return e
		}
	}
	return o[0]
}

func backupClient(t *testing.T, network *ansertest.Network, opts ...anser.DialOption) *anser.Client {
	c := dial(t, "tcp://a:1,b:1", append([]anser.DialOption{
		anser.Dialer(network.Dial), anser.Balancer(inOrder{}), anser.Idempotent(), anser.WithFailMode(anser.Backup), anser.BackupAfter(100 * time.Millisecond), anser.BackupShare(1),
	}, opts...)...)
	list, err := c.Instances(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range list { // so that each has a connection
		if _, err := call(context.Background(), c, "Echo.Say", "", anser.At(in.Key())); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// A call that takes too long is made a second time elsewhere; the slower attempt is cancelled.
func TestBackup(t *testing.T) {
	for name, opts := range map[string][]anser.DialOption{
		"plain":      nil,
		"compressed": {anser.Compress(compress.Gzip(), anser.Forced)},
		"observed":   {anser.Observe(anser.Observer{Request: func(context.Context, anser.MessageInfo) error { return nil }})},
		"intercepted": {anser.Intercept(func(next anser.Func) anser.Func {
			return func(ctx context.Context, inv *anser.Invocation) error { return next(ctx, inv) }
		})},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var p pace
				p.serve(t, network, "a:1", "b:1")
				c := backupClient(t, network, opts...)
				p.set("a:1", 10*time.Second, nil)
				p.tell()
				began := time.Now()
				out, err := call(context.Background(), c, "Echo.Say", "")
				took := time.Since(began)
				synctest.Wait()
				if out != "b:1" || err != nil || took.Round(10*time.Millisecond) != 100*time.Millisecond {
					t.Fatal(out, err, took)
				}
				ran, attempts, cancelled := p.tell()
				if !slices.Equal(ran, []string{"a:1", "b:1"}) || !slices.Equal(attempts, []int{0, 1}) || !slices.Equal(cancelled, []string{"a:1"}) {
					t.Error(ran, attempts, cancelled)
				}
				st := c.Status().Backup
				if len(st) != 1 || st[0].Method != "Echo.Say" || st[0].Sent != 1 || st[0].Won != 1 || st[0].Calls != 1 {
					t.Errorf("%+v", st)
				}
				// The slower attempt counts as slow.
				for _, in := range c.Status().Instances {
					if slow := in.Latency > 10*time.Millisecond; slow != (in.Address == "a:1") || in.Active != 0 {
						t.Errorf("%s: latency %v, %d active", in.Address, in.Latency, in.Active)
					}
				}
			})
		})
	}
}

// One or both of two attempts fail, or the first one answers after all.
func TestBackupOutcomes(t *testing.T) {
	for name, test := range map[string]struct {
		first, second time.Duration
		fail, other   error
		opts          []anser.CallOption
		want          string
		code          anser.Code
		took          time.Duration
		ran           int
	}{
		"the first one answers":      {200, 900, nil, nil, nil, "a:1", 0, 200, 2},
		"the second one fails":       {300, 0, nil, anser.Refuse(anser.Unavailable, "no"), nil, "a:1", 0, 300, 2},
		"the first one is refused":   {200, 200, anser.Refuse(anser.Unavailable, "no"), nil, nil, "b:1", 0, 300, 2},
		"an error is an answer":      {200, 900, anser.NotFound, nil, nil, "", anser.NotFound, 200, 2},
		"of the second one too":      {900, 100, nil, anser.NotFound, nil, "", anser.NotFound, 200, 2},
		"in time":                    {50, 0, nil, nil, nil, "a:1", 0, 50, 1},
		"the call is over":           {900, 900, nil, nil, []anser.CallOption{anser.Timeout(300 * time.Millisecond)}, "", anser.DeadlineExceeded, 300, 2},
		"both are refused":           {200, 200, anser.Refuse(anser.Unavailable, "no"), anser.Refuse(anser.Unavailable, "no"), []anser.CallOption{anser.Attempts(2)}, "", anser.Unavailable, 300, 2},
		"before there is a second":   {50, 0, anser.Refuse(anser.Unavailable, "no"), nil, nil, "b:1", 0, 50, 2},
		"the time is set for a call": {400, 0, nil, nil, []anser.CallOption{anser.BackupAfter(300 * time.Millisecond)}, "b:1", 0, 300, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var p pace
				p.serve(t, network, "a:1", "b:1")
				c := backupClient(t, network)
				p.set("a:1", test.first*time.Millisecond, test.fail)
				p.set("b:1", test.second*time.Millisecond, test.other)
				p.tell()
				began := time.Now()
				out, err := call(context.Background(), c, "Echo.Say", "", test.opts...)
				took := time.Since(began)
				synctest.Wait()
				if out != test.want || anser.CodeOf(err) != test.code || took.Round(10*time.Millisecond) != test.took*time.Millisecond {
					t.Errorf("%q, %v after %v; want %q, %s after %v", out, err, took, test.want, test.code, test.took*time.Millisecond)
				}
				if ran, _, _ := p.tell(); len(ran) != test.ran {
					t.Errorf("ran at %v", ran)
				}
				if name == "both are refused" {
					if e := fault(t, err); len(e.Attempts) != 2 {
						t.Errorf("%+v", e.Attempts)
					}
				}
				for _, in := range c.Status().Instances {
					if in.Active != 0 {
						t.Errorf("%s has %d attempts in flight", in.Address, in.Active)
					}
				}
			})
		})
	}
}

// A call has no second attempt if it must not run twice, without credit or budget, or below a
// retry.
func TestBackupIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		opts []anser.DialOption
		most int64
		let  int64
	}{
		"a share":   {[]anser.DialOption{anser.BackupShare(0.05), anser.RetryBudget(1, 100)}, 10, 8},
		"a budget":  {[]anser.DialOption{anser.RetryBudget(0.1, 0)}, 21, 5},
		"no budget": {[]anser.DialOption{anser.RetryBudget(0, 0)}, 0, 0},
		"no share":  {[]anser.DialOption{anser.BackupShare(0)}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var p pace
				p.serve(t, network, "a:1", "b:1")
				c := backupClient(t, network, test.opts...)
				p.set("a:1", 200*time.Millisecond, nil)
				for range 200 {
					if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
						t.Fatal(err)
					}
				}
				if st := c.Status().Backup[0]; st.Sent > test.most || st.Sent < test.let || st.Calls != 200 {
					t.Errorf("%+v, want %d to %d second attempts", st, test.let, test.most)
				}
			})
		})
	}
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var p pace
		p.serve(t, network, "a:1", "b:1")
		c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Backup), anser.BackupAfter(time.Millisecond), anser.BackupShare(1))
		p.set("a:1", time.Second, nil)
		p.set("b:1", time.Second, nil)
		for range 10 {
			if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
				t.Fatal(err)
			}
		}
		if st := c.Status().Backup[0]; st.Sent != 0 {
			t.Errorf("%d second attempts of a method that is not idempotent", st.Sent)
		}
	})
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var p pace
		p.serve(t, network, "a:1", "b:1")
		below := backupClient(t, network)
		p.set("a:1", time.Second, nil)
		p.set("b:1", time.Second, nil)
		serve(t, network.Listen("c:1"), map[string]handler{
			"Above.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				out, err := anser.Call[[]byte](ctx, below, "Echo.Say", in)
				if err == nil && anser.AttemptFrom(ctx) == 0 {
					err = anser.Aborted
				}
				return out, err
			},
		})
		above := dial(t, "c:1", anser.Dialer(network.Dial), anser.Idempotent(), anser.RetryOn(anser.Aborted))
		p.tell()
		if _, err := call(context.Background(), above, "Above.Say", ""); err != nil {
			t.Fatal(err)
		}
		if ran, _, _ := p.tell(); len(ran) != 3 {
			t.Errorf("%d calls below two attempts, want two for the first and one for the second", len(ran))
		}
	})
}

// A reply that arrives just as the second attempt begins replaces the request, which the second
// attempt sends too.
func TestBackupAsTheReplyArrives(t *testing.T) {
	network := new(ansertest.Network)
	for _, address := range []string{"a:1", "b:1"} {
		serve(t, network.Listen(address), map[string]handler{"Echo.Say": func(_ context.Context, in *[]byte) (*[]byte, error) {
			out := slices.Repeat(*in, 2)
			return &out, nil
		}})
	}
	c := backupClient(t, network, anser.BackupAfter(time.Microsecond), anser.BackupShare(1), anser.RetryBudget(1, 1e6))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 500 {
				in := strings.Repeat(string(rune('a'+(i+n)%26)), 100)
				if out, err := call(context.Background(), c, "Echo.Say", in); out != in+in || err != nil {
					t.Errorf("%.20q… became %.20q…, %v", in, out, err)
				}
			}
		})
	}
	wg.Wait()
	if st := c.Status().Backup[0]; st.Sent == 0 {
		t.Errorf("%+v: no call had a second attempt", st)
	}
}

// The time to wait is learned.
func TestBackupLearns(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var p pace
		p.serve(t, network, "a:1", "b:1")
		c := backupClient(t, network, anser.BackupAfter(0))
		calls := func(n int, take time.Duration) {
			p.set("a:1", take, nil)
			p.set("b:1", take, nil)
			for range n {
				if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		calls(100, 10*time.Millisecond)
		if st := c.Status().Backup[0]; st.After != 0 || st.Sent != 0 {
			t.Errorf("%+v after 100 calls", st)
		}
		calls(100, 10*time.Millisecond)
		if d := c.Status().Backup[0].After; d < 10*time.Millisecond || d > 12*time.Millisecond {
			t.Errorf("waits %v where all calls take 10 ms", d)
		}
		calls(5000, 40*time.Millisecond)
		calls(5000, 40*time.Millisecond)
		if d := c.Status().Backup[0].After; d < 40*time.Millisecond || d > 47*time.Millisecond {
			t.Errorf("waits %v where calls take 40 ms by now", d)
		}
	})
}

// An instance that is lost under both attempts leaves nothing behind.
func TestBackupOfALostConnection(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var s service
		s.serve(t, network, refuse(wire.ResourceExhausted, wire.RetryNever), "a:1")
		l := network.Listen("b:1")
		serve(t, l, map[string]handler{"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()), anser.Idempotent(),
			anser.WithFailMode(anser.Backup), anser.BackupAfter(time.Second), anser.BackupShare(1), anser.Attempts(2))
		for range 2 {
			time.AfterFunc(3*time.Second, l.Kill)
			_, err := call(context.Background(), c, "Echo.Say", "")
			fault(t, err)
		}
		for _, in := range c.Status().Instances {
			if in.Active != 0 {
				t.Errorf("%s has %d attempts in flight", in.Address, in.Active)
			}
		}
	})
}

func BenchmarkBackupInTime(b *testing.B) {
	network := new(ansertest.Network)
	serve(b, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
	for name, opts := range map[string][]anser.DialOption{"failover": nil, "backup": {anser.WithFailMode(anser.Backup), anser.BackupAfter(time.Second)}} {
		c := dial(b, "a:1", append(opts, anser.Dialer(network.Dial), anser.Idempotent())...)
		in := make([]byte, 64)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := anser.Call[[]byte](context.Background(), c, "Echo.Say", &in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
