package anser_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
)

// ward is a set of instances whose health the test controls, with a client of them.
type ward struct {
	t       *testing.T
	network *ansertest.Network
	client  *anser.Client
	who     map[string]*patient
	n       int // number of calls

	mu     sync.Mutex // guards events
	events []anser.HealthEvent
}

// patient is one instance.
type patient struct {
	calls  atomic.Int64
	answer atomic.Pointer[func(method string) error] // called instead of the handler, if set and not nil
	stall  atomic.Pointer[ansertest.FaultyConn]      // the latest connection
}

// gets sets the function that answers calls; nil: the handler.
func (p *patient) gets(f func(method string) error) { p.answer.Store(&f) }

const (
	workMethod  = "Ward.Work"
	otherMethod = "Ward.Other"
)

// newWard starts n instances and a client that uses them in turn.
func newWard(t *testing.T, network *ansertest.Network, n int, opts ...anser.DialOption) *ward {
	w := &ward{t: t, network: network, who: make(map[string]*patient)}
	target := "tcp://"
	for i := range n {
		address := fmt.Sprintf("%c:1", 'a'+i)
		p := new(patient)
		w.who[address] = p
		if i > 0 {
			target += ","
		}
		target += address
		w.serve(address)
	}
	opts = append([]anser.DialOption{
		anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()), anser.Conns(1), anser.WithFailMode(anser.Failfast),
		anser.Observe(anser.Observer{Health: w.note}),
	}, opts...)
	w.client = dial(t, target, opts...)
	for range 8 * n { // until all instances are connected and the order is settled
		call(context.Background(), w.client, workMethod, "")
	}
	w.reset()
	return w
}

func (w *ward) serve(address string) {
	p := w.who[address]
	l := ansertest.FaultyListener(w.network.Listen(address), ansertest.Faults{}, func(c *ansertest.FaultyConn) { p.stall.Store(c) })
	methods := make(map[string]handler)
	for _, method := range []string{workMethod, otherMethod} {
		methods[method] = func(context.Context, *[]byte) (*[]byte, error) {
			p.calls.Add(1)
			if f := p.answer.Load(); f != nil && *f != nil {
				if err := (*f)(method); err != nil {
					return nil, err
				}
			}
			return text(address), nil
		}
	}
	serve(w.t, l, methods)
}

func (w *ward) note(e anser.HealthEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

func (w *ward) told() []anser.HealthEvent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// took returns the changes so far, in order.
func (w *ward) took() (changes []anser.HealthChange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		changes = append(changes, e.Change)
	}
	return changes
}

func (w *ward) reset() {
	for _, p := range w.who {
		p.calls.Store(0)
	}
}

// call makes n calls of the method and returns how many failed.
func (w *ward) call(method string, n int, opts ...anser.CallOption) (failed int) {
	for range n {
		w.n++ // a new key, for balancers that use the request
		if _, err := call(context.Background(), w.client, method, fmt.Sprint(w.n), opts...); err != nil {
			failed++
		}
	}
	return failed
}

func (w *ward) status(address string) anser.InstanceStatus {
	w.t.Helper()
	for _, in := range w.client.Status().Instances {
		if in.Address == address {
			return in
		}
	}
	w.t.Fatalf("no instance at %s", address)
	return anser.InstanceStatus{}
}

// broken returns the error of a handler that fails.
func broken(string) error { return anser.Errorf(anser.Internal, "broken") }

// declining returns the error of an instance that is reachable but does not work.
func declining(string) error { return anser.Refuse(anser.Unavailable, "not now") }

// An instance that refuses everything looks idle to balancers that count attempts in flight. It is
// ejected, probed at growing intervals, and back within 10 s of its recovery.
func TestEjection(t *testing.T) {
	for _, b := range []balance.Balancer{
		balance.RoundRobin(), balance.LeastActive(), balance.LocalFirst(balance.Here{Hosts: []string{"a"}}),
		balance.Closest(balance.Here{Latitude: 48, Longitude: 11}), balance.P2C(), balance.ConsistentHash(),
	} {
		t.Run(b.Name(), func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				w := newWard(t, network, 3, anser.Balancer(b), anser.WithFailMode(anser.Failover))
				a := w.who["a:1"]
				a.gets(declining)
				for i := 0; w.status("a:1").Ejected == ""; i++ {
					w.call(workMethod, 1)
					if i%50 == 0 {
						time.Sleep(100 * time.Millisecond)
					}
					if i > 5000 {
						t.Fatal("it is not ejected")
					}
				}
				if s := w.status("a:1"); s.Ejected != "it refused 5 calls in a row" && s.Ejections != 1 {
					t.Errorf("%+v", s)
				}
				w.reset()
				if failed := w.call(workMethod, 100); failed != 0 || a.calls.Load() != 0 {
					t.Errorf("%d calls failed, %d went there", failed, a.calls.Load())
				}
				for range 300 { // 30 s
					if failed := w.call(workMethod, 5); failed != 0 {
						t.Errorf("%d calls failed", failed)
					}
					time.Sleep(100 * time.Millisecond)
				}
				if n := a.calls.Load(); n < 3 || n > 8 {
					t.Errorf("it was tried %d times in 30 s", n)
				}
				if s := w.status("a:1"); s.Ejections < 3 {
					t.Errorf("%+v", s)
				}
				a.gets(nil)
				began := time.Now()
				for w.status("a:1").Ejected != "" {
					w.call(workMethod, 5)
					time.Sleep(100 * time.Millisecond)
					if time.Since(began) > time.Minute {
						t.Fatalf("it is not back: %+v", w.status("a:1"))
					}
				}
				if d := time.Since(began); d > 10*time.Second {
					t.Errorf("it is back %v after it is well", d)
				}
			})
		})
	}
}

// At most half of the instances are ejected, and never the last one.
func TestEjectionsAreBounded(t *testing.T) {
	for _, n := range []int{1, 2, 3, 6, 7} {
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			w := newWard(t, network, n)
			for _, p := range w.who {
				p.gets(declining)
			}
			most := 0
			for range 100 {
				w.call(workMethod, 10*n)
				time.Sleep(100 * time.Millisecond)
				out := 0
				for _, in := range w.client.Status().Instances {
					if in.Ejected != "" {
						out++
					}
				}
				most = max(most, out)
			}
			if most != n/2 {
				t.Errorf("of %d instances %d were out at once: want %d", n, most, n/2)
			}
		})
	}
}

// Failures with a success between them are not failures in a row.
func TestFailuresMustBeInARow(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 2)
		var n atomic.Int64
		w.who["a:1"].gets(func(string) error {
			if n.Add(1)%5 == 0 {
				return nil
			}
			return declining("")
		})
		w.call(workMethod, 100)
		time.Sleep(time.Second)
		if got := w.took(); len(got) != 0 {
			t.Error(got)
		}
	})
}

// An instance that stops answering is ejected within 5 s although no call has timed out, and is
// back as soon as it answers. Its calls are answered then.
func TestSilentInstance(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 3)
		w.who["a:1"].stall.Load().Stall()
		began := time.Now()
		var waiting []*anser.Future[[]byte]
		for w.status("a:1").Ejected == "" {
			waiting = append(waiting, anser.Go[[]byte](context.Background(), w.client, workMethod, text(""), anser.Timeout(time.Minute)))
			time.Sleep(10 * time.Millisecond)
			if time.Since(began) > 5*time.Second {
				t.Fatalf("it is not ejected: %+v", w.status("a:1"))
			}
		}
		if failed := w.call(workMethod, 100, anser.Timeout(100*time.Millisecond)); failed != 0 {
			t.Errorf("%d calls failed after it was ejected", failed)
		}
		if s := w.status("a:1"); s.Ejected != "it does not answer pings" || !s.EjectedUntil.IsZero() {
			t.Errorf("%+v", s)
		}
		w.who["a:1"].stall.Load().Resume()
		for _, f := range waiting {
			if _, err := f.Wait(); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(2 * time.Second)
		if got := w.took(); !slices.Equal(got, []anser.HealthChange{anser.InstanceEjected, anser.InstanceRestored}) {
			t.Error(got)
		}
		w.reset()
		if failed := w.call(workMethod, 30); failed != 0 || w.who["a:1"].calls.Load() < 9 {
			t.Errorf("it is back: %d calls failed, %d of 30 went there", failed, w.who["a:1"].calls.Load())
		}
	})
}

// Three timeouts without a byte received eject an instance before a ping could.
func TestTimeoutsEject(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 2)
		w.who["a:1"].stall.Load().Stall()
		failed := 0
		for range 10 {
			failed += w.call(workMethod, 1, anser.Timeout(50*time.Millisecond))
			time.Sleep(10 * time.Millisecond)
		}
		if s := w.status("a:1"); s.Ejected != "3 calls in a row timed out, and nothing was received" {
			t.Errorf("%+v", s)
		}
		if failed < 3 || failed > 4 {
			t.Errorf("%d calls failed: want 3, or one more that was under way", failed)
		}
		w.who["a:1"].stall.Load().Resume()
	})
}

// A method that takes longer than its callers wait does not eject the instance, as other calls are
// answered.
func TestSlowMethodEjectsNobody(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 2)
		w.who["a:1"].gets(func(method string) error {
			if method == otherMethod {
				time.Sleep(time.Second)
			}
			return nil
		})
		for range 20 {
			slow := apart(context.Background(), w.client, otherMethod, text(""), anser.Timeout(100*time.Millisecond))
			for range 10 {
				w.call(workMethod, 2)
				time.Sleep(20 * time.Millisecond)
			}
			slow.Wait()
		}
		if got := w.took(); len(got) != 0 {
			t.Error(got)
		}
	})
}

// A new connection ends an ejection and closes breakers, and slow start begins.
func TestReconnectedInstanceStartsAnew(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 2, anser.SlowStart(10*time.Second), anser.Balancer(balance.Weighted()))
		w.who["a:1"].gets(declining)
		w.call(workMethod, 400)
		time.Sleep(500 * time.Millisecond)
		if w.status("a:1").Ejected == "" {
			t.Fatal("it is not ejected")
		}
		w.who["a:1"].gets(nil)
		w.who["a:1"].stall.Load().Cut()
		time.Sleep(time.Second)
		if s := w.status("a:1"); s.Ejected != "" || !s.Connected {
			t.Errorf("%+v", s)
		}
		w.reset()
		if failed := w.call(workMethod, 100); failed != 0 {
			t.Errorf("%d calls failed", failed)
		}
		if n := w.who["a:1"].calls.Load(); n < 5 || n > 30 {
			t.Errorf("it got %d of 100 calls: want few at first", n)
		}
		time.Sleep(10 * time.Second)
		w.reset()
		w.call(workMethod, 100)
		if n := w.who["a:1"].calls.Load(); n < 40 {
			t.Errorf("it got %d of 100 calls: want half in the end", n)
		}
	})
}

// An instance that leaves the list while it is ejected leaves no state behind.
func TestEjectedInstanceLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		f := newFeed()
		for _, a := range []string{"a:1", "b:1", "c:1"} {
			h := hello(a)
			if a == "a:1" {
				h = map[string]handler{"Echo.Who": func(context.Context, *[]byte) (*[]byte, error) { return nil, declining("") }}
			}
			serve(t, network.Listen(a), h)
		}
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()))
		f.list("a:1", "b:1", "c:1")
		reach(t, c, 60)
		time.Sleep(500 * time.Millisecond)
		f.list("b:1", "c:1")
		f.list("a:1", "b:1", "c:1")
		for _, in := range c.Status().Instances {
			if in.Ejected != "" {
				t.Errorf("%+v", in)
			}
		}
		reach(t, c, 60)
		time.Sleep(500 * time.Millisecond)
		if n := c.Status().Health[anser.InstanceEjected]; n != 2 {
			t.Errorf("ejected %d times", n)
		}
	})
}

// The panic of an observer does no harm.
func TestObserverOfHealthPanics(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		w := newWard(t, network, 2, anser.Observe(anser.Observer{Health: func(anser.HealthEvent) { panic("oops") }}))
		w.who["a:1"].gets(declining)
		w.call(workMethod, 40)
		time.Sleep(time.Second)
		if got := w.took(); len(got) == 0 || w.call(workMethod, 10) != 0 {
			t.Error(got)
		}
	})
}

// The same holds over sockets: an instance refuses, is ejected, and comes back.
func TestEjectionOverSockets(t *testing.T) {
	var sick atomic.Bool
	target := "tcp://"
	for i := range 3 {
		l := listen(t)
		if i > 0 {
			target += ","
		}
		target += l.Addr().String()
		serve(t, l, map[string]handler{"Echo.Who": func(_ context.Context, in *[]byte) (*[]byte, error) {
			if i == 0 && sick.Load() {
				return nil, declining("")
			}
			return in, nil
		}})
	}
	var changes atomic.Int64
	// ^The client checks ten times a second for instances to eject; a call may be retried as often
	// as necessary until then.
	c := dial(t, target, anser.Balancer(balance.LeastActive()), anser.OutlierDetection{Time: 200 * time.Millisecond}, anser.RetryBudget(1, 1000),
		anser.Observe(anser.Observer{Health: func(anser.HealthEvent) { changes.Add(1) }}))
	sick.Store(true)
	count := func(change anser.HealthChange) int64 { return c.Status().Health[change] }
	eventually(t, "the instance is ejected", func() bool {
		_, err := call(context.Background(), c, "Echo.Who", "")
		if err != nil {
			t.Error(err)
		}
		return count(anser.InstanceEjected) > 0
	})
	sick.Store(false)
	eventually(t, "the instance is back", func() bool {
		if _, err := call(context.Background(), c, "Echo.Who", ""); err != nil {
			t.Error(err)
		}
		return count(anser.InstanceRestored) > 0 && changes.Load() >= 2
	})
}

// Streams count by their results: an instance that refuses to open them is ejected, and one whose
// streams exceed their callers' timeouts is not.
func TestStreamsCount(t *testing.T) {
	for name, refuse := range map[string]bool{"refused": true, "out of time": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				for _, a := range []string{"a:1", "b:1"} {
					s := anser.NewServer(silent)
					err := anser.HandleStream(s, "Echo.Talk", func(ctx context.Context, _ *anser.Stream[[]byte, []byte]) error {
						if refuse && a == "a:1" {
							return declining("")
						}
						<-ctx.Done()
						return ctx.Err()
					})
					if err != nil {
						t.Fatal(err)
					}
					run(t, s, network.Listen(a))
				}
				c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial), anser.Balancer(balance.RoundRobin()))
				for range 30 {
					ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
					st, err := anser.Open[[]byte, []byte](ctx, c, "Echo.Talk")
					if err == nil {
						_, err = st.Recv()
					}
					if err == nil {
						t.Error("a message came")
					}
					cancel()
				}
				time.Sleep(time.Second)
				if n := c.Status().Health[anser.InstanceEjected]; n > 0 != refuse {
					t.Errorf("ejected %d times", n)
				}
			})
		})
	}
}
