package prometheus_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

// The target of the system's client.
const target = "unsteady://user:secret@registry/arith"

type (
	numbers struct{ A, B int }
	number  struct{ C int }
)

// unsteady is a registry that gives a list and is then unreachable.
type unsteady []registry.Instance

func (u unsteady) Watch(ctx context.Context, _ string, update func([]registry.Instance), trouble func(error)) error {
	update(u)
	trouble(errors.New("the registry is away"))
	<-ctx.Done()
	return ctx.Err()
}

func (u unsteady) scheme() registry.Scheme {
	return registry.Scheme{Name: "unsteady", Open: func(t *url.URL) (registry.Resolver, string, error) {
		return u, strings.TrimPrefix(t.Path, "/"), nil
	}}
}

// system has a service with three instances, one of which cannot be reached and one fails, and a
// client. One meter measures all of it, and the first instance serves its metrics.
type system struct {
	meter   *telemetry.Meter
	address string // of the first instance
	client  *anser.Client
	ruled   *anser.Client // it follows traffic rules
	servers []*anser.Server
}

func newSystem(t testing.TB) *system {
	t.Helper()
	s := &system{meter: telemetry.New()}
	mux := http.NewServeMux()
	mux.Handle("/metrics", prometheus.Handler(s.meter))
	good := s.serve(t, protocols.All(protocols.Handler(mux)), anser.MaxMessage(1<<16))
	anser.Handle(s.servers[0], "Arith.Fail", func(context.Context, *numbers) (*number, error) {
		return nil, anser.Errorf(anser.NotFound, "there is no such thing")
	})
	anser.Handle(s.servers[0], "Arith.One", func(context.Context, *numbers) (*number, error) {
		time.Sleep(5 * time.Millisecond)
		return &number{1}, nil
	}, anser.MaxInFlight(1))
	anser.Handle(s.servers[0], "Arith.Panic", func(context.Context, *numbers) (*number, error) { panic("a bug") })
	bad := s.serve(t, anser.Intercept(func(next anser.Func) anser.Func {
		return func(context.Context, *anser.Invocation) error { return anser.Errorf(anser.Internal, "broken") }
	}))
	s.address = good
	list := unsteady{{Service: "arith", Address: good}, {Service: "arith", Address: bad}, {Service: "arith", Address: nowhere(t)}}
	c, err := anser.Dial(target, list.scheme(), s.meter.Option(), anser.NoSnapshot(), anser.Logger(quiet), anser.Idempotent(),
		anser.RetryOn(anser.Internal), anser.Breaker{Calls: 5, Open: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s.client = c
	t.Cleanup(func() { c.Close() })
	s.ruled = ruled(t, good, s.meter)
	return s
}

// ruled returns a client that follows rules from its registry.
func ruled(t testing.TB, address string, meter *telemetry.Meter) *anser.Client {
	t.Helper()
	m := registry.NewMemory()
	if _, err := route.Save(t.Context(), m, "arith", 0, route.RuleSet{}, "ada", "a test"); err != nil {
		t.Fatal(err)
	}
	if err := m.Register(t.Context(), registry.Instance{Service: "arith", Address: address}); err != nil {
		t.Fatal(err)
	}
	c, err := anser.Dial("memory:///arith", m.Scheme("memory"), route.Rules(), meter.Option(), anser.NoSnapshot(), anser.Logger(quiet))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

var quiet = slog.New(slog.DiscardHandler)

// serve starts a server with the method Arith.Add and returns its address.
func (s *system) serve(t testing.TB, opts ...anser.ServerOption) string {
	t.Helper()
	server := anser.NewServer(append(opts, s.meter.Option(), anser.NoSignals(), anser.Logger(quiet), anser.AdaptiveLimit(2, 100))...)
	anser.Handle(server, "Arith.Add", func(_ context.Context, in *numbers) (*number, error) { return &number{in.A + in.B}, nil })
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	s.servers = append(s.servers, server)
	return l.Addr().String()
}

// nowhere returns an address at which nothing listens.
func nowhere(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// load makes calls of all kinds: 20 that succeed, and some that fail in each of several ways.
func (s *system) load(t testing.TB, ctx context.Context) {
	t.Helper()
	trace := anser.WithTrace(ctx, anser.Trace{TraceID: [16]byte{1}, SpanID: [8]byte{2}, Flags: 1})
	good := anser.At(s.address)
	for i := range 20 {
		if _, err := anser.Call[number](trace, s.client, "Arith.Add", &numbers{i, i}, good); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	if _, err := anser.Call[number](ctx, s.ruled, "Arith.Add", &numbers{}); err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	for _, method := range []string{"Arith.Fail", "Arith.Panic", "Arith.None"} {
		anser.Call[number](ctx, s.client, method, &numbers{}, good)
	}
	for range 8 { // the breaker of the failing instance opens
		anser.Call[number](ctx, s.client, "Arith.Add", &numbers{})
	}
	var wg sync.WaitGroup
	for range 8 { // all but one are refused
		wg.Go(func() { anser.Call[number](ctx, s.client, "Arith.One", &numbers{}, good, anser.Attempts(1)) })
	}
	wg.Wait()
}
