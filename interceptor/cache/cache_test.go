package cache_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/interceptor/cache"
	"github.com/anser-rpc/anser/internal/benchpb"
	"github.com/anser-rpc/anser/internal/testlog"
)

var silent = anser.Logger(slog.New(slog.DiscardHandler))

type request struct {
	Name   string
	Labels map[string]int
}

type reply struct {
	Version int
	List    []string
}

// service answers with its version, and counts the calls that reach its handlers.
type service struct {
	runs    atomic.Int64
	version atomic.Int64
	take    time.Duration
	fail    atomic.Pointer[anser.Error]
}

func (s *service) get(ctx context.Context, in *request) (*reply, error) {
	s.runs.Add(1)
	anser.SetTrailer(ctx, "tenant", anser.MetadataFrom(ctx).Get("tenant"))
	v := int(s.version.Load())
	if s.take > 0 {
		select {
		case <-time.After(s.take):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if e := s.fail.Load(); e != nil {
		return nil, e
	}
	if in.Name == "panic" && v > 0 {
		panic("broken")
	}
	return &reply{v, []string{in.Name}}, nil
}

// start serves on l with opts, and returns a client.
func start(t testing.TB, l net.Listener, svc *service, onServer []anser.Interceptor, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	s := anser.NewServer(silent, anser.Intercept(onServer...))
	anser.Handle(s, "Catalog.Get", svc.get)
	anser.Handle(s, "Catalog.Other", svc.get)
	anser.Handle(s, "Catalog.Bytes", func(_ context.Context, in *[]byte) (*[]byte, error) {
		svc.runs.Add(1)
		return in, nil
	})
	anser.Handle(s, "Catalog.Proto", func(_ context.Context, in *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
		svc.runs.Add(1)
		return in, nil
	})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	c, err := anser.Dial(l.Addr().String(), append(opts, silent, anser.NoSnapshot())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Close()
		<-done
	})
	return c
}

func newCache(t testing.TB, opts ...cache.Option) *cache.Cache {
	t.Helper()
	k, err := cache.New(append([]cache.Option{
		cache.Method("Catalog.Get", time.Minute), cache.Method("Catalog.Bytes", time.Minute), cache.Method("Catalog.Proto", time.Minute),
		cache.Logger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// sides runs f with the cache on either side, in a synctest bubble.
func sides(t *testing.T, opts []cache.Option, f func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client)) {
	t.Helper()
	for _, side := range []string{"client", "server"} {
		t.Run(side, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network, svc, k := new(ansertest.Network), new(service), newCache(t, opts...)
				if side == "client" {
					f(t, svc, k, start(t, network.Listen("a:1"), svc, nil, anser.Dialer(network.Dial), anser.Intercept(k.Intercept)))
				} else {
					f(t, svc, k, start(t, network.Listen("a:1"), svc, []anser.Interceptor{k.Intercept}, anser.Dialer(network.Dial)))
				}
			})
		})
	}
}

// get makes a call and returns the version in its reply.
func get(t *testing.T, c *anser.Client, name string, opts ...anser.CallOption) int {
	t.Helper()
	out, err := anser.Call[reply](context.Background(), c, "Catalog.Get", &request{Name: name}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.List) != 1 || out.List[0] != name {
		t.Fatalf("asked for %q, got %+v", name, out)
	}
	out.List[0] = "changed by its owner"
	return out.Version
}

func TestOverASocket(t *testing.T) {
	for _, side := range []string{"client", "server"} {
		t.Run(side, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			svc, k := new(service), newCache(t)
			var c *anser.Client
			if side == "client" {
				c = start(t, l, svc, nil, anser.Intercept(k.Intercept))
			} else {
				c = start(t, l, svc, []anser.Interceptor{k.Intercept})
			}
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					for j := range 50 {
						in := request{Name: fmt.Sprint(j), Labels: map[string]int{}}
						for n := range 10 {
							in.Labels[fmt.Sprint((n+i)%10)] = (n + i) % 10
						}
						out, err := anser.Call[reply](t.Context(), c, "Catalog.Get", &in)
						if err != nil || len(out.List) != 1 || out.List[0] != in.Name {
							t.Errorf("%+v, %v", out, err)
							return
						}
						out.List[0] = "mine"
					}
				})
			}
			wg.Wait()
			if st := k.Stats(); svc.runs.Load() != 50 || st.Hits+st.Misses != 1000 || st.Stored != 50 || st.Entries != 50 || st.Skipped != 0 {
				t.Errorf("%d runs, %+v", svc.runs.Load(), st)
			}
		})
	}
}

func TestTime(t *testing.T) {
	sides(t, []cache.Option{cache.Jitter(0)}, func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client) {
		get(t, c, "x")
		svc.version.Store(1)
		time.Sleep(59 * time.Second)
		if v := get(t, c, "x"); v != 0 {
			t.Error("got anew before its time was over:", v)
		}
		time.Sleep(time.Second)
		if v := get(t, c, "x"); v != 1 {
			t.Error("kept beyond its time:", v)
		}
	})
}

func TestJitter(t *testing.T) {
	sides(t, []cache.Option{cache.Jitter(0.5)}, func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client) {
		const n = 200
		misses := func() int64 {
			before := k.Stats().Misses
			for i := range n {
				get(t, c, fmt.Sprint(i))
			}
			return k.Stats().Misses - before
		}
		misses()
		time.Sleep(29 * time.Second)
		if m := misses(); m != 0 {
			t.Errorf("%d are gone before half of their time", m)
		}
		time.Sleep(16 * time.Second)
		if m := misses(); m < n/4 || m > 3*n/4 { // about half; a quarter is 7 standard deviations away
			t.Errorf("%d of %d are gone after three quarters of their time", m, n)
		}
	})
}

// An expired entry is used for a while, and one call refreshes it.
func TestStale(t *testing.T) {
	sides(t, []cache.Option{cache.Jitter(0), cache.Stale(30 * time.Second)}, func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client) {
		get(t, c, "x")
		svc.version.Store(1)
		svc.take = time.Second
		time.Sleep(61 * time.Second)
		for range 5 {
			if v := get(t, c, "x"); v != 0 {
				t.Fatal("a call waited for a new reply:", v)
			}
		}
		time.Sleep(2 * time.Second)
		if v := get(t, c, "x"); v != 1 || svc.runs.Load() != 2 {
			t.Errorf("version %d after %d runs", v, svc.runs.Load())
		}
		if st := k.Stats(); st.Stale != 5 || st.Refreshes != 1 || st.Failed != 0 {
			t.Errorf("%+v", st)
		}
		svc.fail.Store(anser.Errorf(anser.Unavailable, "away"))
		time.Sleep(70 * time.Second)
		for range 3 {
			get(t, c, "x") // while the service is down
			time.Sleep(5 * time.Second)
		}
		if st := k.Stats(); st.Failed != 3 {
			t.Errorf("%+v", st)
		}
		time.Sleep(30 * time.Second)
		if _, err := anser.Call[reply](t.Context(), c, "Catalog.Get", &request{Name: "x"}); !errors.Is(err, anser.Unavailable) {
			t.Error("given out beyond all bounds:", err)
		}
	})
}

// A panic in the background, without a caller, is logged on the server, and has no other effect.
func TestPanicInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testlog.Buffer
		network, svc := new(ansertest.Network), new(service)
		k := newCache(t, cache.Jitter(0), cache.Stale(time.Hour), cache.Logger(log.Logger()))
		c := start(t, network.Listen("a:1"), svc, []anser.Interceptor{k.Intercept}, anser.Dialer(network.Dial))
		get(t, c, "panic")
		svc.version.Store(1)
		time.Sleep(2 * time.Minute)
		get(t, c, "panic")
		synctest.Wait()
		if st := k.Stats(); st.Failed != 1 || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%+v, and in the log %q", st, log.String())
		}
	})
}

func TestNegative(t *testing.T) {
	fails := func(t *testing.T, c *anser.Client, code anser.Code) {
		t.Helper()
		_, err := anser.Call[reply](t.Context(), c, "Catalog.Get", &request{Name: "x"})
		if e, ok := errors.AsType[*anser.Error](err); !ok || e.Code != code || e.Outcome != anser.Executed || e.Message != "why" {
			t.Fatal(err)
		}
	}
	sides(t, []cache.Option{cache.Jitter(0), cache.Negative(time.Second, anser.NotFound)}, func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client) {
		svc.fail.Store(anser.Errorf(anser.NotFound, "why"))
		for range 3 {
			fails(t, c, anser.NotFound)
		}
		if svc.runs.Load() != 1 {
			t.Error(svc.runs.Load(), "runs")
		}
		time.Sleep(time.Second)
		fails(t, c, anser.NotFound)
		if svc.runs.Load() != 2 {
			t.Error(svc.runs.Load(), "runs")
		}
		svc.fail.Store(anser.Errorf(anser.Aborted, "why"))
		time.Sleep(time.Second)
		fails(t, c, anser.Aborted)
		fails(t, c, anser.Aborted)
		if svc.runs.Load() != 4 {
			t.Error("another code is kept:", svc.runs.Load(), "runs")
		}
		svc.fail.Store(nil)
		get(t, c, "x")
	})
}

func TestForget(t *testing.T) {
	for _, test := range []struct {
		name   string
		forget func(k *cache.Cache) (int, error)
		want   [3]int // the versions of x, y and z
	}{
		{"the method", func(k *cache.Cache) (int, error) { k.Forget("Catalog.Get"); return 1, nil }, [3]int{1, 1, 1}},
		{"another method", func(k *cache.Cache) (int, error) { k.Forget("Catalog.Bytes"); k.Forget("No.Method"); return 1, nil }, [3]int{0, 0, 0}},
		{"a request", func(k *cache.Cache) (int, error) {
			return k.ForgetRequest("Catalog.Get", &request{Name: "y"})
		}, [3]int{0, 1, 0}},
		{"everything", func(k *cache.Cache) (int, error) { k.Clear(); return 1, nil }, [3]int{1, 1, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			sides(t, nil, func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client) {
				names := []string{"x", "y", "z"}
				for _, n := range names {
					get(t, c, n)
				}
				svc.version.Store(1)
				if n, err := test.forget(k); n != 1 || err != nil {
					t.Error(n, err)
				}
				for i, n := range names {
					if v := get(t, c, n); v != test.want[i] {
						t.Errorf("%s: version %d", n, v)
					}
				}
			})
		})
	}
}

// A request is forgotten in every codec in which it was received.
func TestForgetRequestInEveryCodec(t *testing.T) {
	sides(t, nil, func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client) {
		for _, name := range []string{"x", "y"} {
			get(t, c, name)
			get(t, c, name, anser.Codec(new(codec.JSON)))
		}
		if n, err := k.ForgetRequest("Catalog.Get", &request{Name: "x"}); n != 2 || err != nil || k.Stats().Entries != 2 {
			t.Error(n, err)
		}
		if n, err := k.ForgetRequest("Catalog.Get", new(chan int)); n != 0 || err == nil {
			t.Error(n, err)
		}
	})
}

// The reply of a call that began before an invalidation is not cached, and no later call joins it.
func TestForgetDuringACall(t *testing.T) {
	sides(t, nil, func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client) {
		svc.take = 2 * time.Second
		old := make(chan int)
		go func() { old <- get(t, c, "x") }()
		time.Sleep(time.Second)
		svc.version.Store(1)
		k.Forget("Catalog.Get")
		if v := get(t, c, "x"); v != 1 {
			t.Error("a call joined one that began before the invalidation")
		}
		if v := <-old; v != 0 {
			t.Error(v)
		}
		if v := get(t, c, "x"); v != 1 {
			t.Error("an old reply was kept")
		}
	})
}

func TestWhatMakesCallsDifferent(t *testing.T) {
	type tenant struct{}
	bytes := func(c *anser.Client, in []byte) error {
		out, err := anser.Call[[]byte](context.Background(), c, "Catalog.Bytes", &in)
		if err == nil && string(*out) != string(in) {
			err = fmt.Errorf("got %q", *out)
		}
		return err
	}
	with := func(c *anser.Client, key, value string) error {
		ctx := anser.WithMetadata(context.Background(), anser.Metadata{key: value})
		_, err := anser.Call[reply](ctx, c, "Catalog.Get", &request{Name: "x"})
		return err
	}
	for _, test := range []struct {
		name    string
		call    func(c *anser.Client, i int) error
		runs    int64
		skipped int64
	}{
		{"nothing", func(c *anser.Client, i int) error { return bytes(c, []byte("same")) }, 1, 0},
		{"the request", func(c *anser.Client, i int) error { return bytes(c, []byte{byte(i)}) }, 4, 0},
		{"a message of protobuf", func(c *anser.Client, i int) error {
			out, err := anser.Call[benchpb.BenchmarkMessage](context.Background(), c, "Catalog.Proto", benchpb.Filled())
			if err == nil && out.GetField1() != benchpb.Filled().GetField1() {
				err = errors.New("another reply")
			}
			return err
		}, 1, 0},
		{"a method that is not named", func(c *anser.Client, i int) error {
			_, err := anser.Call[reply](context.Background(), c, "Catalog.Other", &request{Name: "x"})
			return err
		}, 4, 0},
		{"metadata that does not matter", func(c *anser.Client, i int) error { return with(c, "request-id", fmt.Sprint(i)) }, 1, 0},
		{"metadata that matters", func(c *anser.Client, i int) error { return with(c, "Tenant", fmt.Sprint(i%2)) }, 2, 0},
		{"credentials", func(c *anser.Client, i int) error { return with(c, "Authorization", "same") }, 4, 4},
		{"credentials that matter", func(c *anser.Client, i int) error { return with(c, "cookie", fmt.Sprint(i%2)) }, 2, 0},
		{"too large a request", func(c *anser.Client, i int) error { return bytes(c, make([]byte, 5000)) }, 4, 4},
		{"too large with its reply", func(c *anser.Client, i int) error { return bytes(c, make([]byte, 2500)) }, 4, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			opts := []cache.Option{cache.Vary("Tenant", "cookie"), cache.MaxEntry(4096)}
			sides(t, opts, func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client) {
				for i := range 4 {
					if err := test.call(c, i); err != nil {
						t.Fatal(err)
					}
				}
				if st := k.Stats(); svc.runs.Load() != test.runs || st.Skipped != test.skipped {
					t.Errorf("%d runs, want %d: %+v", svc.runs.Load(), test.runs, st)
				}
			})
		})
	}
	t.Run("partition", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			network, svc := new(ansertest.Network), new(service)
			k := newCache(t, cache.Partition(func(ctx context.Context) (string, bool) {
				part, ok := ctx.Value(tenant{}).(string)
				return part, ok
			}))
			c := start(t, network.Listen("a:1"), svc, nil, anser.Dialer(network.Dial), anser.Intercept(k.Intercept))
			for i, ctx := range []context.Context{
				context.WithValue(t.Context(), tenant{}, "a"), context.WithValue(t.Context(), tenant{}, "b"),
				context.WithValue(t.Context(), tenant{}, "a"), t.Context(), t.Context(),
			} {
				svc.version.Store(int64(i))
				out, err := anser.Call[reply](ctx, c, "Catalog.Get", &request{})
				if err != nil || out.Version != []int{0, 1, 0, 3, 4}[i] {
					t.Error(i, out, err)
				}
			}
		})
	})
}

// A reply from the cache has neither the trailers nor the address of the original call.
func TestTrailers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, svc, k := new(ansertest.Network), new(service), newCache(t)
		c := start(t, network.Listen("a:1"), svc, nil, anser.Dialer(network.Dial), anser.Intercept(k.Intercept))
		ctx := anser.WithMetadata(t.Context(), anser.Metadata{"tenant": "a"})
		for _, want := range []string{"a", ""} {
			md := anser.Metadata{"tenant": "of another call"}
			if _, err := anser.Call[reply](ctx, c, "Catalog.Get", &request{}, anser.Trailer(&md)); err != nil || md["tenant"] != want {
				t.Error(md, err)
			}
		}
	})
}

// Many concurrent misses are one call, each with its own deadline.
func TestHerd(t *testing.T) {
	sides(t, nil, func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client) {
		svc.take = time.Second
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%2)*700*time.Millisecond)
				defer cancel()
				_, err := anser.Call[reply](ctx, c, "Catalog.Get", &request{Name: "x"})
				if late := i%2 == 0; late != errors.Is(err, anser.DeadlineExceeded) || !late && err != nil {
					t.Error(i, err)
				}
			})
		}
		wg.Wait()
		if st := k.Stats(); svc.runs.Load() != 1 || st.Misses != 100 || st.Joined != 99 {
			t.Errorf("%d runs, %+v", svc.runs.Load(), st)
		}
	})
}

func TestClose(t *testing.T) {
	sides(t, nil, func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client) {
		get(t, c, "x")
		k.Close()
		k.Close()
		svc.version.Store(1)
		if get(t, c, "x") != 0 || get(t, c, "y") != 1 || k.Stats().Entries != 1 {
			t.Errorf("%+v", k.Stats())
		}
	})
}

func TestMistakes(t *testing.T) {
	ok := cache.Method("A.B", time.Second)
	for i, opts := range [][]cache.Option{
		{},
		{nil, ok},
		{cache.Method("", time.Second)},
		{cache.Method("A.B", 0)},
		{ok, ok},
		{ok, cache.Stale(-1)},
		{ok, cache.Negative(0, anser.NotFound)},
		{ok, cache.Negative(time.Second)},
		{ok, cache.Negative(time.Second, anser.Canceled)},
		{ok, cache.Jitter(1)},
		{ok, cache.Jitter(-1)},
		{ok, cache.MaxEntries(0)},
		{ok, cache.MaxBytes(0)},
		{ok, cache.MaxEntry(0)},
		{ok, cache.Partition(nil)},
		{ok, cache.Logger(nil)},
	} {
		if k, err := cache.New(opts...); err == nil || k != nil {
			t.Errorf("%d: no error", i)
		}
	}
}

// A oneway caller wants the handler to run, not a reply.
func TestOneway(t *testing.T) {
	sides(t, nil, func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client) {
		get(t, c, "x")
		for range 3 {
			if err := c.Send(t.Context(), "Catalog.Get", &request{Name: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if st := k.Stats(); svc.runs.Load() != 4 || st.Skipped != 3 {
			t.Errorf("%d runs, %+v", svc.runs.Load(), st)
		}
	})
}

// Futures get copies, too.
func TestFutures(t *testing.T) {
	sides(t, nil, func(t *testing.T, svc *service, k *cache.Cache, c *anser.Client) {
		svc.take = time.Second
		var list []*anser.Future[reply]
		for range 10 {
			list = append(list, anser.Go[reply](t.Context(), c, "Catalog.Get", &request{Name: "x"}))
		}
		for _, f := range list {
			out, err := f.Wait()
			if err != nil || out.List[0] != "x" {
				t.Fatal(out, err)
			}
			out.List[0] = "mine"
		}
		if svc.runs.Load() != 1 {
			t.Error(svc.runs.Load(), "runs")
		}
	})
}

// On a server a shared call also has a timeout, whichever callers join it, and a caller with time
// left continues.
func TestSharedCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, svc, k := new(ansertest.Network), &service{take: time.Hour}, newCache(t)
		c := start(t, network.Listen("a:1"), svc, []anser.Interceptor{k.Intercept}, anser.Dialer(network.Dial))
		call := func(d time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			_, err := anser.Call[reply](ctx, c, "Catalog.Get", &request{Name: "x"})
			return err
		}
		var wg sync.WaitGroup
		for range 8 { // each waits for less time than the call takes, and one is always waiting
			wg.Go(func() {
				if err := call(3500 * time.Millisecond); !errors.Is(err, anser.DeadlineExceeded) {
					t.Error(err)
				}
			})
			time.Sleep(3 * time.Second)
		}
		wg.Wait()
		if n := svc.runs.Load(); n != 3 {
			t.Errorf("%d runs in 25 s of calls that end after 10 s", n)
		}
	})
}
