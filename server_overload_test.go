package anser_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
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

// holder is a handler whose calls block until they are released. It records the order in which
// they began.
type holder struct {
	mu    sync.Mutex
	began []string
	free  chan struct{}
}

func newHolder() *holder { return &holder{free: make(chan struct{})} }

func (h *holder) hold(ctx context.Context, in *[]byte) (*[]byte, error) {
	h.mu.Lock()
	h.began = append(h.began, string(*in))
	h.mu.Unlock()
	select {
	case <-h.free:
		return in, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *holder) order() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.began)
}

func (h *holder) running(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d handlers", n), func() bool { return len(h.order()) >= n })
}

// holding serves the holder's method with the options and returns its server and a client that
// makes one attempt per call.
func holding(t *testing.T, h *holder, opts []anser.HandleOption, server ...anser.ServerOption) (*anser.Server, *anser.Client) {
	t.Helper()
	l := listen(t)
	s := serveHolder(t, h, l, opts, server...)
	return s, dial(t, l.Addr().String(), anser.WithFailMode(anser.Failfast), anser.Timeout(time.Minute))
}

// serveHolder serves the holder's method and an echo on l.
func serveHolder(t *testing.T, h *holder, l net.Listener, opts []anser.HandleOption, server ...anser.ServerOption) *anser.Server {
	t.Helper()
	s := anser.NewServer(append([]anser.ServerOption{silent}, server...)...)
	if err := anser.Handle(s, "Hold.Do", h.hold, opts...); err != nil {
		t.Fatal(err)
	}
	if err := anser.Handle(s, "Echo.Say", echo); err != nil {
		t.Fatal(err)
	}
	run(t, s, l)
	return s
}

func limits(s *anser.Server) anser.LimitStats { return s.Stats().Methods["Hold.Do"].Limits }

func TestMaxInFlightOfAMethod(t *testing.T) {
	for name, mode := range map[string][]anser.HandleOption{"learned": nil, "inline": {anser.Inline()}, "concurrent": {anser.Concurrent()}} {
		t.Run(name, func(t *testing.T) {
			h := newHolder()
			s, c := holding(t, h, append(mode, anser.MaxInFlight(3)))
			ctx := context.Background()
			var open []*result
			for i := range 3 {
				open = append(open, apart(ctx, c, "Hold.Do", text("a")))
				h.running(t, i+1)
			}
			_, err := call(ctx, c, "Hold.Do", "over")
			if e := wantFault(t, err, anser.ResourceExhausted, anser.Refused); e.Message != "the method Hold.Do is at its limit of 3 calls in flight (anser.MaxInFlight)" {
				t.Errorf("%q", e.Message)
			}
			if _, err := call(ctx, c, "Echo.Say", "another method"); err != nil {
				t.Error(err)
			}
			h.free <- struct{}{}
			eventually(t, "there is room again", func() bool {
				r := apart(ctx, c, "Hold.Do", text("b"))
				for len(h.order()) < 4 {
					select {
					case <-r.done:
						return false
					case <-time.After(time.Millisecond):
					}
				}
				open = append(open, r)
				return true
			})
			close(h.free)
			for _, r := range open {
				if _, err := r.Wait(); err != nil {
					t.Error(err)
				}
			}
			st := s.Stats().Methods["Hold.Do"]
			if st.Calls != 4 || st.Refused < 1 || st.Limits.Shed[anser.Normal] != st.Refused {
				t.Errorf("%+v: want 4 calls and as many shed as refused", st)
			}
		})
	}
}

func TestMaxQueueTime(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		const bound = 30 * time.Millisecond
		h := newHolder()
		s := serveHolder(t, h, network.Listen("a:1"), []anser.HandleOption{anser.AdaptiveLimit(1, 1), anser.MaxQueueTime(bound)})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Failfast), anser.Timeout(time.Minute))
		ctx := context.Background()
		first := apart(ctx, c, "Hold.Do", text("first"))
		synctest.Wait()
		began := time.Now()
		_, err := call(ctx, c, "Hold.Do", "late")
		if e := wantFault(t, err, anser.ResourceExhausted, anser.Refused); e.Message != "the call waited longer than 30ms before it could run (anser.MaxQueueTime)" {
			t.Errorf("%q", e.Message)
		}
		if d := time.Since(began); d < bound || d > 2*bound {
			t.Errorf("refused after %v, want %v or a little more", d, bound)
		}
		close(h.free)
		if _, err := first.Wait(); err != nil {
			t.Error(err)
		}
		if got := h.order(); len(got) != 1 {
			t.Errorf("%q ran, want the first call alone", got)
		}
		if st := limits(s); st.Shed[anser.Normal] != 1 || st.Waiting != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// Requests that wait in the read buffer have waited too.
func TestMaxQueueTimeInTheBuffer(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		if ran, refused := behindSlowCalls(t, network.Listen("a:1"), network.Dial, 64); ran == 0 || refused == 0 {
			t.Errorf("%d calls ran and %d were refused: want some of both", ran, refused)
		}
	})
}

// So have the requests that wait behind it in the socket.
func TestMaxQueueTimeInTheSocket(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the socket is not asked here")
	}
	// Requests do not queue up before a reader if the sender gets hardly any time to run.
	for range 20 {
		ran, refused := behindSlowCalls(t, listen(t), new(net.Dialer).DialContext, 8<<10)
		if ran > 0 && refused > 0 {
			return
		}
		t.Logf("%d calls ran and %d were refused: want some of both", ran, refused)
	}
	t.Error("no call is refused for its time in the socket")
}

// behindSlowCalls sends many requests of the size at once, whose handlers keep the reader busy
// for longer than calls may wait, and returns how many ran and how many were refused.
func behindSlowCalls(t *testing.T, l net.Listener, dial func(ctx context.Context, network, address string) (net.Conn, error), size int) (int64, int64) {
	t.Helper()
	const calls = 256
	var ran atomic.Int64
	s := anser.NewServer(silent, anser.MaxQueueTime(40*time.Millisecond))
	anser.Handle(s, "Slow.Do", func(context.Context, *[]byte) (*[]byte, error) {
		ran.Add(1)
		time.Sleep(300 * time.Microsecond) // after a millisecond another goroutine would take over the reading
		return text("ok"), nil
	}, anser.Inline())
	run(t, s, l)
	nc, err := dial(t.Context(), l.Addr().Network(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	p := wirepeer.New(nc)
	if _, err := p.Handshake(); err != nil {
		t.Fatal(err)
	}
	sent := returned(func() {
		p.Send(wire.AppendMethod(nil, 1, "Slow.Do"))
		payload := make([]byte, size)
		for id := range uint64(calls) {
			p.Send(wirepeer.Request(id+1, 1, payload))
		}
	})
	refused := int64(0)
	for range calls {
		f, err := p.NextOf(wire.TypeReply, wire.TypeError)
		if err != nil {
			t.Fatal(err)
		}
		if f.Type == wire.TypeError {
			e, err := wire.ParseError(f.Flags, f.Body)
			if err != nil || e.Code != wire.ResourceExhausted || !strings.Contains(e.Message, "anser.MaxQueueTime") {
				t.Fatalf("%+v, %v", e, err)
			}
			refused++
		}
	}
	<-sent
	if ran.Load()+refused != calls {
		t.Errorf("%d of %d calls ran and %d were refused: want each once", ran.Load(), calls, refused)
	}
	if st := s.Stats(); st.Limits.Shed[anser.Normal] != refused || st.Refused != refused {
		t.Errorf("%d refused, counted are %+v", refused, st.Limits)
	}
	return ran.Load(), refused
}

// enqueue makes calls of the priority that wait for their turn.
func enqueue(t *testing.T, s *anser.Server, c *anser.Client, p anser.Priority, n int) []*result {
	t.Helper()
	var out []*result
	for range n {
		before := limits(s).Waiting
		out = append(out, apart(anser.WithPriority(context.Background(), p), c, "Hold.Do", text(fmt.Sprint(p))))
		eventually(t, "the call waits", func() bool { return limits(s).Waiting > before })
	}
	return out
}

func TestHigherPriorityGoesFirst(t *testing.T) {
	h := newHolder()
	s, c := holding(t, h, []anser.HandleOption{anser.AdaptiveLimit(1, 1), anser.MaxQueueTime(time.Minute)})
	calls := []*result{apart(context.Background(), c, "Hold.Do", text("first"))}
	h.running(t, 1)
	for _, p := range []anser.Priority{anser.Low, anser.Sheddable, anser.Critical, anser.Normal, anser.Low} {
		calls = append(calls, enqueue(t, s, c, p, 1)...)
	}
	if st := limits(s); st.Limit != 1 || st.Running != 1 || st.Waiting != 5 {
		t.Errorf("%+v", st)
	}
	close(h.free)
	for _, r := range calls {
		if _, err := r.Wait(); err != nil {
			t.Error(err)
		}
	}
	want := []string{"first", fmt.Sprint(anser.Critical), fmt.Sprint(anser.Normal), fmt.Sprint(anser.Low), fmt.Sprint(anser.Low), fmt.Sprint(anser.Sheddable)}
	if got := h.order(); !slices.Equal(got, want) {
		t.Errorf("the calls ran in the order %q, want %q", got, want)
	}
}

func TestLowPriorityIsShedFirst(t *testing.T) {
	h := newHolder()
	s, c := holding(t, h, []anser.HandleOption{anser.AdaptiveLimit(1, 1), anser.MaxQueueTime(time.Minute)})
	calls := []*result{apart(context.Background(), c, "Hold.Do", text("first"))}
	h.running(t, 1)
	room := int(limits(s).Room)
	low := enqueue(t, s, c, anser.Low, room)
	// The queue is full: another call of the same priority, or of a lower one, is refused.
	for _, p := range []anser.Priority{anser.Sheddable, anser.Low} {
		_, err := call(anser.WithPriority(context.Background(), p), c, "Hold.Do", "over")
		if e := wantFault(t, err, anser.ResourceExhausted, anser.Refused); e.Message != fmt.Sprintf("the method Hold.Do is overloaded: 1 calls run, its limit for now, and %d wait (anser.AdaptiveLimit)", room) {
			t.Errorf("%q", e.Message)
		}
	}
	// A call of a higher priority replaces the last one of the lowest priority.
	critical := apart(anser.WithPriority(context.Background(), anser.Critical), c, "Hold.Do", text("critical"))
	_, err := low[room-1].Wait()
	wantFault(t, err, anser.ResourceExhausted, anser.Refused)
	close(h.free)
	for _, r := range append(append(calls, low[:room-1]...), critical) {
		if _, err := r.Wait(); err != nil {
			t.Error(err)
		}
	}
	if got := h.order(); len(got) != room+1 || got[1] != "critical" {
		t.Errorf("the calls ran in the order %q, want the critical one second and %d in all", got, room+1)
	}
	if got, want := limits(s).Shed, [...]int64{1, 2, 0, 0}; got != want {
		t.Errorf("shed %v, want %v", got, want)
	}
}

func TestCancelledWhileItWaits(t *testing.T) {
	h := newHolder()
	s, c := holding(t, h, []anser.HandleOption{anser.AdaptiveLimit(1, 1), anser.MaxQueueTime(time.Minute)})
	first := apart(context.Background(), c, "Hold.Do", text("first"))
	h.running(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	second := apart(ctx, c, "Hold.Do", text("second"))
	eventually(t, "the second call waits", func() bool { return limits(s).Waiting == 1 })
	cancel()
	if _, err := second.Wait(); anser.CodeOf(err) != anser.Canceled {
		t.Error(err)
	}
	eventually(t, "the server knows", func() bool { return s.Stats().Cancelled == 1 })
	close(h.free)
	if _, err := first.Wait(); err != nil {
		t.Error(err)
	}
	eventually(t, "nobody waits", func() bool { st := limits(s); return st.Waiting == 0 && st.Running == 0 })
	if got := h.order(); len(got) != 1 {
		t.Errorf("%q ran, want the first call alone", got)
	}
}

// The limit of a server applies to its methods together, and calls succeed again after an
// overload.
func TestOverloadAndRecovery(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) { // in real time an undisturbed call may wait for too long, too
		slots := make(chan struct{}, 4)
		work := func(ctx context.Context, in *[]byte) (*[]byte, error) {
			slots <- struct{}{}
			defer func() { <-slots }()
			time.Sleep(2 * time.Millisecond)
			return in, nil
		}
		s := serve(t, network.Listen("a:1"), map[string]handler{"A.Do": work, "B.Do": work}, anser.AdaptiveLimit(0, 8))
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.WithFailMode(anser.Failfast), anser.Timeout(time.Minute))
		ctx := context.Background()
		var good, refused atomic.Int64
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				for range 20 {
					switch _, err := call(ctx, c, []string{"A.Do", "B.Do"}[i%2], "x"); {
					case err == nil:
						good.Add(1)
					case anser.CodeOf(err) == anser.ResourceExhausted && anser.OutcomeOf(err) == anser.Refused:
						refused.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		st := s.Stats()
		if good.Load() == 0 || refused.Load() == 0 {
			t.Errorf("%d good, %d refused: want some of both", good.Load(), refused.Load())
		}
		if st.Limits.Limit < 1 || st.Limits.Limit > 8 {
			t.Errorf("the limit is %d, want 1 to 8", st.Limits.Limit)
		}
		shed := int64(0)
		for _, n := range st.Limits.Shed {
			shed += n
		}
		if ran := st.Methods["A.Do"].Calls + st.Methods["B.Do"].Calls; shed != refused.Load() || ran != good.Load() {
			t.Errorf("%d good and %d refused; the server counts %d and %d", good.Load(), refused.Load(), ran, shed)
		}
		synctest.Wait()
		if st := s.Stats(); st.Limits.Running != 0 || st.Limits.Waiting != 0 || st.InFlight != 0 {
			t.Errorf("not everything is over: %+v", st)
		}
		for range 100 {
			if _, err := call(ctx, c, "A.Do", "x"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A server that is closed or drained while calls wait ends, and no goroutine is left.
func TestCloseWhileCallsWait(t *testing.T) {
	h := newHolder()
	s, c := holding(t, h, []anser.HandleOption{anser.AdaptiveLimit(1, 1), anser.MaxQueueTime(time.Minute)})
	first := apart(context.Background(), c, "Hold.Do", text("first"))
	h.running(t, 1)
	waiting := enqueue(t, s, c, anser.Normal, 5)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, r := range append(waiting, first) {
		if _, err := r.Wait(); err == nil {
			t.Error("a call on a closed server succeeded")
		}
	}
}

func TestDrainWhileCallsWait(t *testing.T) {
	h := newHolder()
	s, c := holding(t, h, []anser.HandleOption{anser.AdaptiveLimit(1, 1), anser.MaxQueueTime(time.Minute)})
	first := apart(context.Background(), c, "Hold.Do", text("first"))
	h.running(t, 1)
	waiting := enqueue(t, s, c, anser.Normal, 5)
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	close(h.free)
	for _, r := range append(waiting, first) {
		if _, err := r.Wait(); err != nil {
			t.Error(err)
		}
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func TestLimitsThatCannotWork(t *testing.T) {
	idle := func(_ context.Context, st *anser.Stream[[]byte, []byte]) error { return nil }
	for want, add := range map[string]func(s *anser.Server) error{
		"anser.MaxInFlight(0): want at least 1":       func(s *anser.Server) error { return anser.Handle(s, "A.B", echo, anser.MaxInFlight(0)) },
		"anser.MaxQueueTime(0s): want a time above 0": func(s *anser.Server) error { return anser.Handle(s, "A.B", echo, anser.MaxQueueTime(0)) },
		"anser.AdaptiveLimit(2, 1): want":             func(s *anser.Server) error { return anser.Handle(s, "A.B", echo, anser.AdaptiveLimit(2, 1)) },
		`method "A.B" cannot have an adaptive limit`: func(s *anser.Server) error {
			return anser.Handle(s, "A.B", echo, anser.AdaptiveLimit(0, 0), anser.Inline())
		},
		`method "A.C" cannot have an adaptive limit`: func(s *anser.Server) error { return anser.HandleStream(s, "A.C", idle, anser.AdaptiveLimit(0, 0)) },
	} {
		s := anser.NewServer(silent)
		if err := add(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
		if err := s.Serve(listen(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Serve: %v; want %s", err, want)
		}
	}
}

// A call that a handler makes has the priority of the handler's own call.
func TestPriorityIsCarriedAlong(t *testing.T) {
	back := listen(t)
	serve(t, back, map[string]handler{"Last.Do": func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		return text(fmt.Sprint(anser.PriorityFrom(ctx))), nil
	}})
	next := dial(t, back.Addr().String())
	front := listen(t)
	// Priorities also pass through the adaptive limit's queue, whose flags share a field with
	// them.
	serve(t, front, map[string]handler{"First.Do": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		return anser.Go[[]byte](context.WithoutCancel(ctx), next, "Last.Do", in).Wait()
	}}, anser.AdaptiveLimit(0, 0), anser.MaxQueueTime(time.Minute))
	c := dial(t, front.Addr().String())
	for p := anser.Sheddable; p <= anser.Critical; p++ {
		got, err := call(anser.WithPriority(context.Background(), p), c, "First.Do", "")
		if err != nil || got != fmt.Sprint(p) {
			t.Errorf("priority %d arrived as %q, %v", p, got, err)
		}
	}
}
