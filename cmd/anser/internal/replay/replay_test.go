package replay_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/cmd/anser/internal/replay"
	"github.com/anser-rpc/anser/record"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

var number = flag.Int("calls", 2000, "number of calls that are recorded under load")

type query struct {
	ID    int
	Token string
}

type line struct {
	Name  string
	Price int
}

type order struct {
	ID    int
	Lines []line
	Token string
	At    int64 // differs with each call
}

// version is a server of orders.
type version struct {
	price func(id int) int
	calls atomic.Int64 // of Orders.Get
	adds  atomic.Int64
}

func (v *version) serve(t testing.TB, opts ...anser.ServerOption) *anser.Client {
	t.Helper()
	silent := anser.Logger(slog.New(slog.DiscardHandler))
	s := anser.NewServer(append(opts, silent)...)
	anser.Handle(s, "Orders.Get", func(_ context.Context, in *query) (*order, error) {
		v.calls.Add(1)
		if in.ID%10 == 0 {
			return nil, anser.Errorf(anser.NotFound, "there is no order %d", in.ID)
		}
		return &order{ID: in.ID, Lines: []line{{"a", 1}, {"b", v.price(in.ID)}}, Token: noise(), At: rand.Int64()}, nil
	}, anser.Idempotent())
	anser.Handle(s, "Orders.Add", func(_ context.Context, in *order) (*order, error) {
		v.adds.Add(1)
		return in, nil
	})
	anser.HandleStream(s, "Orders.Watch", func(_ context.Context, st *anser.Stream[order, query]) error {
		for in, err := range st.All() {
			if err != nil {
				return err
			}
			if err := st.Send(&order{ID: in.ID, Lines: []line{{"a", v.price(in.ID)}}, Token: noise()}); err != nil {
				return err
			}
		}
		return nil
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-served })
	c, err := anser.Dial(l.Addr().String(), silent, anser.NoSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func oldPrice(id int) int { return id }

// recorded returns a recording of n calls of Orders.Get under load, with one of Orders.Add and a
// stream.
func recorded(t testing.TB, n int) *record.Recording {
	t.Helper()
	dir := t.TempDir()
	r, err := record.New(record.Options{Dir: dir, Share: 1, PerSecond: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	c := (&version{price: oldPrice}).serve(t, r.Option())
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		wg.Go(func() {
			for id := int(next.Add(1)); id <= n; id = int(next.Add(1)) {
				_, err := anser.Call[order](t.Context(), c, "Orders.Get", &query{id, "t"})
				if got := anser.CodeOf(err); got != anser.OK && got != anser.NotFound {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := anser.Call[order](t.Context(), c, "Orders.Add", &order{}); err != nil {
		t.Fatal(err)
	}
	st, err := anser.Open[query, order](t.Context(), c, "Orders.Watch")
	if err != nil {
		t.Fatal(err)
	}
	for id := range 3 {
		if err := st.Send(&query{id, "t"}); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	st.CloseSend()
	if _, err := st.Recv(); err != io.EOF {
		t.Fatal(err)
	}
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := r.Stats(); s.Recorded != int64(n)+2 {
		t.Fatalf("%+v", s)
	}
	in, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return in
}

func options(targets ...*anser.Client) replay.Options {
	o := replay.Options{Open: 64, Timeout: time.Minute, Twice: true}
	for i, c := range targets {
		o.Targets = append(o.Targets, replay.Target{Name: []string{"new", "old"}[i], Client: c})
	}
	return o
}

func run(t testing.TB, in *record.Recording, o replay.Options) *replay.Report {
	t.Helper()
	r, err := replay.Run(t.Context(), in, record.Filter{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// describe returns the report in words.
func describe(r *replay.Report) string {
	var b strings.Builder
	for _, m := range r.Methods {
		fmt.Fprintf(&b, "%s %d/%d:", m.Name, m.Sent, m.Skipped)
		for _, d := range m.Differences {
			fmt.Fprintf(&b, " %s=%d", d.Path, d.Calls)
			if d.Noisy {
				b.WriteString(" noise")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The same version gives the same replies, with what is secret or random left out.
func TestEqual(t *testing.T) {
	n := *number
	in := recorded(t, n)
	v := &version{price: oldPrice}
	c := v.serve(t)
	r := run(t, in, options(c))
	want := fmt.Sprintf("Orders.Add 0/1:\nOrders.Get %d/0: At=%d noise\nOrders.Watch 0/1:\n", n, n-n/10)
	if got := describe(r); got != want || r.Differences != 0 || r.Sent != int64(n) || r.Skipped != 2 {
		t.Errorf("%s%+v, want\n%s", got, r, want)
	}
	if got := v.calls.Load(); got != int64(2*n) {
		t.Errorf("%d calls", got)
	}
	o := options(c)
	o.Ignored, _ = replay.ParseIgnored([]string{"Orders.Get:At"})
	if got, want := describe(run(t, in, o)), fmt.Sprintf("Orders.Add 0/1:\nOrders.Get %d/0:\nOrders.Watch 0/1:\n", n); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}

// One call of all has another value in one field.
func TestChangedField(t *testing.T) {
	n := *number
	in := recorded(t, n)
	v := &version{price: func(id int) int {
		if id == n/2+1 {
			return -1
		}
		return id
	}}
	changed, old := v.serve(t), (&version{price: oldPrice}).serve(t)
	for name, o := range map[string]replay.Options{"recording": options(changed), "old version": options(changed, old)} {
		r := run(t, in, o)
		if r.Differences != 1 {
			t.Fatalf("%s: %s", name, describe(r))
		}
		for _, m := range r.Methods {
			for _, d := range m.Differences {
				if d.Noisy {
					continue
				}
				e := d.Example
				if m.Name != "Orders.Get" || d.Path != "Lines[*].Price" || e.Path != "Lines[1].Price" || d.Calls != 1 || e.Old != fmt.Sprint(n/2+1) || e.New != "-1" {
					t.Errorf("%s: %s %+v %+v", name, m.Name, d, e)
				}
				if want := fmt.Sprintf(`{"ID":%d,"Token":"redacted"}`, n/2+1); e.Request != want {
					t.Errorf("%s: %s, want %s", name, e.Request, want)
				}
			}
		}
	}
}

// Calls that have effects are sent only if the user says so, and never twice.
func TestUnsafe(t *testing.T) {
	in := recorded(t, 10)
	v := &version{price: func(id int) int { return id + 1 }}
	o := options(v.serve(t))
	o.Unsafe = true
	o.Ignored, _ = replay.ParseIgnored([]string{".At"})
	r := run(t, in, o)
	want := "Orders.Add 1/0:\nOrders.Get 10/0: Lines[*].Price=9\nOrders.Watch 1/0: [*].Lines[*].Price=1\n"
	if got := describe(r); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if v.adds.Load() != 1 || v.calls.Load() != 20 {
		t.Errorf("%d calls with effects, %d without", v.adds.Load(), v.calls.Load())
	}
}

func TestOtherCode(t *testing.T) {
	in := recorded(t, 5)
	s := (&version{price: oldPrice}).serve(t, anser.Intercept(func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			if inv.Request.(*query).ID == 3 {
				return anser.Errorf(anser.Aborted, "on purpose")
			}
			return next(ctx, inv)
		}
	}))
	r := run(t, in, options(s))
	if got := describe(r); !strings.Contains(got, "(code)=1") {
		t.Error(got)
	}
}

func TestTargetThatDoesNotDescribe(t *testing.T) {
	in := recorded(t, 3)
	c := (&version{price: oldPrice}).serve(t, anser.NoDescribe())
	if _, err := replay.Run(t.Context(), in, record.Filter{}, options(c)); err == nil || !strings.Contains(err.Error(), "--unsafe") {
		t.Errorf("%v", err)
	}
	o := options(c)
	o.Unsafe = true
	if r := run(t, in, o); r.Sent != 5 {
		t.Error(describe(r))
	}
}

// The version that is in use may have a method that it does not describe, as a gateway does.
func TestMethodThatIsNotDescribed(t *testing.T) {
	in := recorded(t, 3)
	v := &version{price: oldPrice}
	s := anser.NewServer(anser.Logger(slog.New(slog.DiscardHandler)))
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() { s.Close(); <-served }()
	old, err := anser.Dial(l.Addr().String(), anser.NoSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	r := run(t, in, options(v.serve(t), old))
	if r.Sent != 0 || v.calls.Load() != 0 || r.Methods[1].Why != "old does not describe it" {
		t.Errorf("%+v", r)
	}
}

// What was hidden below a name that paths quote is not compared either.
func TestHiddenBelowQuotedName(t *testing.T) {
	dir := t.TempDir()
	rec, err := record.New(record.Options{Dir: dir, Share: 1})
	if err != nil {
		t.Fatal(err)
	}
	serve := func(opts ...anser.ServerOption) *anser.Client {
		s := anser.NewServer(append(opts, anser.Logger(slog.New(slog.DiscardHandler)))...)
		anser.Handle(s, "Hosts.Get", func(context.Context, *query) (*map[string]query, error) {
			return &map[string]query{"a.example": {ID: 1, Token: noise()}}, nil
		}, anser.Idempotent())
		l, err := s.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		t.Cleanup(func() { s.Close(); <-served })
		c, err := anser.Dial(l.Addr().String(), anser.NoSnapshot())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	if _, err := anser.Call[map[string]query](t.Context(), serve(rec.Option()), "Hosts.Get", new(query)); err != nil {
		t.Fatal(err)
	}
	if err := rec.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	in, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	o := options(serve())
	o.Twice = false
	if r := run(t, in, o); r.Sent != 1 || len(r.Methods[0].Differences) != 0 {
		t.Error(describe(r))
	}
}

// The calls are sent at their own pace, or faster, whether the server answers or not.
func TestPace(t *testing.T) {
	for _, test := range []struct {
		name        string
		speed, rate float64
		want        time.Duration // from the first call to the last one
	}{{"own", 1, 0, 18 * time.Second}, {"faster", 6, 0, 3 * time.Second}, {"rate", 0, 3, 3 * time.Second}, {"at once", 0, 0, 0}} {
		synctest.Test(t, func(t *testing.T) {
			network := new(ansertest.Network)
			var mu sync.Mutex
			var at []time.Time
			slow := func(_ context.Context, in *query) (*order, error) {
				mu.Lock()
				at = append(at, time.Now())
				mu.Unlock()
				time.Sleep(time.Hour / 2) // an open loop does not wait for it
				return &order{}, nil
			}
			silent := anser.Logger(slog.New(slog.DiscardHandler))
			serve := func(address string, h func(context.Context, *query) (*order, error), opts ...anser.ServerOption) *anser.Client {
				s := anser.NewServer(append(opts, silent)...)
				anser.Handle(s, "Orders.Get", h, anser.Idempotent())
				served := make(chan error, 1)
				l := network.Listen(address)
				go func() { served <- s.Serve(l) }()
				t.Cleanup(func() { s.Close(); <-served })
				c, err := anser.Dial(address, silent, anser.NoSnapshot(), anser.Dialer(network.Dial))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				return c
			}
			dir := t.TempDir()
			rec, err := record.New(record.Options{Dir: dir, Share: 1})
			if err != nil {
				t.Fatal(err)
			}
			c := serve("old:1", func(context.Context, *query) (*order, error) { return &order{}, nil }, rec.Option())
			for id := range 10 {
				if id > 0 {
					time.Sleep(2 * time.Second)
				}
				if _, err := anser.Call[order](t.Context(), c, "Orders.Get", &query{ID: id}); err != nil {
					t.Fatal(err)
				}
			}
			rec.Close(t.Context())
			in, err := record.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			o := options(serve("new:1", slow))
			o.Speed, o.Rate, o.Timeout, o.Twice = test.speed, test.rate, time.Hour, false
			r := run(t, in, o)
			if len(at) != 10 || r.Differences != 0 {
				t.Fatalf("%s: %d calls, %s", test.name, len(at), describe(r))
			}
			if got := at[9].Sub(at[0]); got.Round(50*time.Millisecond) != test.want || r.Behind > time.Millisecond {
				t.Errorf("%s: %v, want %v, %v late", test.name, got, test.want, r.Behind)
			}
		})
	}
}

// A replay that is interrupted returns, and says so.
func TestInterrupted(t *testing.T) {
	in := recorded(t, 50)
	ctx, cancel := context.WithCancel(t.Context())
	o := options((&version{price: func(int) int { cancel(); return 0 }}).serve(t))
	o.Rate = 10
	r, err := replay.Run(ctx, in, record.Filter{}, o)
	if err != nil || !r.Stopped || r.Sent > 40 {
		t.Errorf("%+v, %v", r, err)
	}
}

// noise is a text that differs with each call.
func noise() string { return fmt.Sprint(rand.Uint64(), "x") }
