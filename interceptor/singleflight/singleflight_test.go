package singleflight_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/interceptor/singleflight"
	"github.com/anser-rpc/anser/internal/benchpb"
	"github.com/anser-rpc/anser/internal/testusage"
)

var silent = anser.Logger(slog.New(slog.DiscardHandler))

type request struct {
	Name   string
	Labels map[string]int
}

type reply struct{ List []string }

// service counts the calls that reach its handlers, which take a second.
type service struct {
	runs  atomic.Int64
	ended atomic.Int64 // number of handlers whose context ended
	take  time.Duration
	held  chan struct{} // if it is not nil, handlers end when it is closed
}

func (s *service) get(ctx context.Context, in *request) (*reply, error) {
	s.runs.Add(1)
	anser.SetTrailer(ctx, "tenant", anser.MetadataFrom(ctx).Get("tenant"))
	if s.held != nil {
		<-s.held
	}
	select {
	case <-time.After(s.take):
	case <-ctx.Done():
		s.ended.Add(1)
		return nil, ctx.Err()
	}
	if in.Name == "missing" {
		return nil, anser.Errorf(anser.NotFound, "no %s", in.Name)
	}
	return &reply{[]string{in.Name, fmt.Sprint(len(in.Labels))}}, nil
}

// start serves on l and returns a client with the group g, and further options.
func start(t *testing.T, l net.Listener, svc *service, g *singleflight.Group, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	s := anser.NewServer(silent)
	anser.Handle(s, "Catalog.Get", svc.get)
	anser.Handle(s, "Catalog.Other", svc.get)
	anser.Handle(s, "Catalog.Bytes", func(_ context.Context, in *[]byte) (*[]byte, error) {
		svc.runs.Add(1)
		time.Sleep(svc.take)
		return in, nil
	})
	anser.Handle(s, "Catalog.Proto", func(_ context.Context, in *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
		svc.runs.Add(1)
		time.Sleep(svc.take)
		return in, nil
	})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	c, err := anser.Dial(l.Addr().String(), append(opts, silent, anser.NoSnapshot(), anser.Intercept(g.Intercept))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Close()
		c.Close()
		s.Close()
		<-done
	})
	return c
}

func group(t *testing.T, opts ...singleflight.Option) *singleflight.Group {
	t.Helper()
	g, err := singleflight.New(append(opts, singleflight.Methods("Catalog.Get", "Catalog.Bytes", "Catalog.Proto"))...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// bubble runs f with a client in a synctest bubble.
func bubble(t *testing.T, f func(t *testing.T, svc *service, g *singleflight.Group, c *anser.Client), opts ...singleflight.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network, svc, g := new(ansertest.Network), &service{take: time.Second}, group(t, opts...)
		f(t, svc, g, start(t, network.Listen("a:1"), svc, g, anser.Dialer(network.Dial)))
	})
}

// each runs f n times concurrently.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// Equal calls are one on the wire, and each caller gets its own reply. The order of a map in the
// request does not matter.
func TestOverASocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	svc, g := &service{held: make(chan struct{})}, group(t)
	c := start(t, l, svc, g, anser.Timeout(time.Minute))
	go func() {
		defer close(svc.held)
		testusage.Soon(func() bool { return g.Stats().Calls == 50 })
	}()
	var trailers [50]anser.Metadata
	replies := make([]*reply, 50)
	ctx := anser.WithMetadata(t.Context(), anser.Metadata{"tenant": "x"})
	each(50, func(i int) {
		in := request{Name: "shoe", Labels: map[string]int{}}
		for j := range 10 {
			in.Labels[fmt.Sprint((i+j)%10)] = (i + j) % 10
		}
		out, err := anser.Call[reply](ctx, c, "Catalog.Get", &in, anser.Trailer(&trailers[i]))
		if err != nil {
			t.Error(err)
			return
		}
		replies[i] = out
		in.Name, in.Labels["mine"] = "changed", 1 // the request belongs to the caller again
	})
	st := g.Stats()
	if st.Calls != 50 || st.Joined != 50-svc.runs.Load() || st.Alone != 0 || svc.runs.Load() >= 50 {
		t.Errorf("%d runs, %+v", svc.runs.Load(), st)
	}
	for i, r := range replies {
		if r == nil || !slices.Equal(r.List, []string{"shoe", "10"}) || trailers[i]["tenant"] != "x" {
			t.Fatal(i, r, trailers[i])
		}
		r.List[0] = "mine"
		trailers[i]["tenant"] = "mine"
	}
}

func TestWhatMakesCallsDifferent(t *testing.T) {
	for _, test := range []struct {
		name string
		call func(c *anser.Client, i int) error
		runs int64
	}{
		{"nothing", func(c *anser.Client, i int) error {
			_, err := anser.Call[reply](context.Background(), c, "Catalog.Get", &request{Name: "x"})
			return err
		}, 1},
		{"the request", func(c *anser.Client, i int) error {
			_, err := anser.Call[reply](context.Background(), c, "Catalog.Get", &request{Name: fmt.Sprint(i)})
			return err
		}, 4},
		{"a method that is not named", func(c *anser.Client, i int) error {
			_, err := anser.Call[reply](context.Background(), c, "Catalog.Other", &request{Name: "x"})
			return err
		}, 4},
		{"metadata", func(c *anser.Client, i int) error {
			ctx := anser.WithMetadata(context.Background(), anser.Metadata{"authorization": fmt.Sprint(i)})
			_, err := anser.Call[reply](ctx, c, "Catalog.Get", &request{Name: "x"})
			return err
		}, 4},
		{"metadata that is ignored", func(c *anser.Client, i int) error {
			ctx := anser.WithMetadata(context.Background(), anser.Metadata{"request-id": fmt.Sprint(i)})
			_, err := anser.Call[reply](ctx, c, "Catalog.Get", &request{Name: "x"})
			return err
		}, 1},
		{"the priority", func(c *anser.Client, i int) error {
			_, err := anser.Call[reply](anser.WithPriority(context.Background(), anser.Priority(i)), c, "Catalog.Get", &request{Name: "x"})
			return err
		}, 4},
		{"the codec", func(c *anser.Client, i int) error {
			var opts []anser.CallOption
			if i%2 == 0 {
				opts = append(opts, anser.Codec(new(codec.JSON)))
			}
			_, err := anser.Call[reply](context.Background(), c, "Catalog.Get", &request{Name: "x"}, opts...)
			return err
		}, 2},
		{"the type of the reply", func(c *anser.Client, i int) error {
			if i%2 == 0 {
				_, err := anser.Call[struct{ List [2]string }](context.Background(), c, "Catalog.Get", &request{Name: "x"})
				return err
			}
			_, err := anser.Call[reply](context.Background(), c, "Catalog.Get", &request{Name: "x"})
			return err
		}, 2},
		{"raw bytes", func(c *anser.Client, i int) error {
			in := []byte("bytes")
			out, err := anser.Call[[]byte](context.Background(), c, "Catalog.Bytes", &in)
			if err == nil && string(*out) != "bytes" {
				err = fmt.Errorf("got %q", *out)
			}
			return err
		}, 1},
		{"a message of protobuf", func(c *anser.Client, i int) error {
			out, err := anser.Call[benchpb.BenchmarkMessage](context.Background(), c, "Catalog.Proto", benchpb.Filled())
			if err == nil && out.GetField1() != benchpb.Filled().GetField1() {
				err = errors.New("another reply")
			}
			return err
		}, 1},
		{"no reply is wanted", func(c *anser.Client, i int) error {
			in := []byte("bytes")
			return c.Call(context.Background(), "Catalog.Bytes", &in, nil, anser.Codec(codec.Raw{}))
		}, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, svc *service, g *singleflight.Group, c *anser.Client) {
				each(4, func(i int) {
					if err := test.call(c, i); err != nil {
						t.Error(err)
					}
				})
				if svc.runs.Load() != test.runs {
					t.Errorf("%d runs, want %d: %+v", svc.runs.Load(), test.runs, g.Stats())
				}
			}, singleflight.Ignore("Request-ID"))
		})
	}
}

// Each caller keeps its own deadline. The call outlives its first caller, and ends with the last
// one.
func TestTimes(t *testing.T) {
	bubble(t, func(t *testing.T, svc *service, g *singleflight.Group, c *anser.Client) {
		call := func(d time.Duration) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			began := time.Now()
			_, err := anser.Call[reply](ctx, c, "Catalog.Get", &request{Name: "x"})
			return time.Since(began), err
		}
		var wg sync.WaitGroup
		for _, d := range []time.Duration{100, 300, 500} {
			wg.Go(func() {
				took, err := call(d * time.Millisecond)
				e, ok := errors.AsType[*anser.Error](err)
				if !ok || e.Code != anser.DeadlineExceeded || e.Outcome != anser.OutcomeUnknown || e.Method != "Catalog.Get" || !errors.Is(err, context.DeadlineExceeded) || took != d*time.Millisecond {
					t.Error(d, took, err)
				}
			})
			synctest.Wait()
		}
		wg.Go(func() {
			if took, err := call(time.Minute); err != nil || took != time.Second {
				t.Error(took, err)
			}
		})
		wg.Wait()
		if svc.runs.Load() != 1 || svc.ended.Load() != 0 {
			t.Error(svc.runs.Load(), svc.ended.Load())
		}
		for _, d := range []time.Duration{100, 300} {
			wg.Go(func() { call(d * time.Millisecond) })
		}
		wg.Wait()
		synctest.Wait()
		if svc.runs.Load() != 2 || svc.ended.Load() != 1 {
			t.Error("the call was not cancelled when nobody waited any more:", svc.runs.Load(), svc.ended.Load())
		}
	})
}

// A call that joined late does not end at the deadline of the call it joined.
func TestLateJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, svc, g := new(ansertest.Network), &service{take: 8 * time.Second}, group(t)
		c := start(t, network.Listen("a:1"), svc, g, anser.Dialer(network.Dial), anser.Timeout(5*time.Second))
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := anser.Call[reply](t.Context(), c, "Catalog.Get", &request{Name: "x"})
			if !errors.Is(err, anser.DeadlineExceeded) {
				t.Error(err)
			}
		})
		time.Sleep(4 * time.Second)
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := anser.Call[reply](ctx, c, "Catalog.Get", &request{Name: "x"})
			if err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if svc.runs.Load() != 2 {
			t.Error(svc.runs.Load(), "runs")
		}
	})
}

func TestErrorReachesAll(t *testing.T) {
	bubble(t, func(t *testing.T, svc *service, g *singleflight.Group, c *anser.Client) {
		each(10, func(int) {
			_, err := anser.Call[reply](t.Context(), c, "Catalog.Get", &request{Name: "missing"})
			if e, ok := errors.AsType[*anser.Error](err); !ok || e.Code != anser.NotFound || e.Message != "no missing" || e.Address != "a:1" {
				t.Error(err)
			}
		})
		if svc.runs.Load() != 1 {
			t.Error(svc.runs.Load(), "runs")
		}
	})
}

// A panic of an inner interceptor is raised in all callers, and reported only to the log.
func TestPanicReachesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, svc, g := new(ansertest.Network), &service{take: time.Second}, group(t)
		var panics atomic.Int64
		c := start(t, network.Listen("a:1"), svc, g, anser.Dialer(network.Dial))
		broken, err := anser.Dial("a:1", anser.Dialer(network.Dial), silent, anser.NoSnapshot(), anser.Intercept(g.Intercept, func(anser.Func) anser.Func {
			return func(context.Context, *anser.Invocation) error {
				panics.Add(1)
				time.Sleep(time.Second)
				panic("secret")
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer broken.Close()
		each(5, func(int) {
			_, err := anser.Call[reply](t.Context(), broken, "Catalog.Get", &request{Name: "x"})
			if !errors.Is(err, anser.Internal) || strings.Contains(err.Error(), "secret") {
				t.Error(err)
			}
		})
		if panics.Load() != 1 {
			t.Error(panics.Load())
		}
		if _, err := anser.Call[reply](t.Context(), c, "Catalog.Get", &request{Name: "x"}); err != nil {
			t.Error(err)
		}
	})
}

// lopsided encodes a field that it does not decode.
type lopsided struct{ N int }

func (l *lopsided) MarshalBinary() ([]byte, error) { return []byte{byte(l.N)}, nil }
func (l *lopsided) UnmarshalBinary([]byte) error   { return nil }

// Messages that cannot be copied are not shared.
func TestLopsidedMessages(t *testing.T) {
	bubble(t, func(t *testing.T, svc *service, g *singleflight.Group, c *anser.Client) {
		for range 2 {
			each(3, func(int) {
				// The server rejects this message; the test only counts that each call arrives.
				_, err := anser.Call[lopsided](t.Context(), c, "Catalog.Bytes", &lopsided{7})
				if err == nil || anser.OutcomeOf(err) != anser.Refused {
					t.Error(err)
				}
			})
		}
		if st := g.Stats(); st.Alone != 6 || st.Calls != 6 {
			t.Errorf("%+v", st)
		}
	})
}

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T, svc *service, g *singleflight.Group, c *anser.Client) {
		go func() {
			time.Sleep(500 * time.Millisecond)
			g.Close()
		}()
		if _, err := anser.Call[reply](t.Context(), c, "Catalog.Get", &request{Name: "x"}); !errors.Is(err, anser.Canceled) {
			t.Error(err)
		}
		if out, err := anser.Call[reply](t.Context(), c, "Catalog.Get", &request{Name: "x"}); err != nil || out.List[0] != "x" || g.Stats().Alone != 1 {
			t.Error(out, err)
		}
	})
}

func TestServerRefuses(t *testing.T) {
	network, g := new(ansertest.Network), group(t)
	s := anser.NewServer(silent, anser.Intercept(g.Intercept))
	anser.Handle(s, "Catalog.Get", new(service).get)
	go s.Serve(network.Listen("a:1"))
	defer s.Close()
	c, err := anser.Dial("a:1", anser.Dialer(network.Dial), silent, anser.NoSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = anser.Call[reply](t.Context(), c, "Catalog.Get", &request{})
	if anser.OutcomeOf(err) != anser.Refused || !strings.Contains(err.Error(), "interceptor/cache") {
		t.Error(err)
	}
}

func TestMistakes(t *testing.T) {
	for _, opts := range [][]singleflight.Option{{}, {nil}, {singleflight.Methods()}, {singleflight.Methods("")}} {
		if g, err := singleflight.New(opts...); err == nil || g != nil {
			t.Error("no error")
		}
	}
}

func BenchmarkAlone(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := anser.NewServer(silent)
	anser.Handle(s, "Catalog.Get", func(_ context.Context, in *request) (*reply, error) { return &reply{[]string{in.Name}}, nil })
	go s.Serve(l)
	defer s.Close()
	g, err := singleflight.New(singleflight.Methods("Catalog.Get"))
	if err != nil {
		b.Fatal(err)
	}
	for name, opts := range map[string][]anser.DialOption{"with": {anser.Intercept(g.Intercept)}, "without": nil} {
		b.Run(name, func(b *testing.B) {
			c, err := anser.Dial(l.Addr().String(), opts...)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := anser.Call[reply](b.Context(), c, "Catalog.Get", &request{Name: "x"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
