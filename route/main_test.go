package route_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// Name is the reply of the test servers.
type Name struct{ Name string }

// whoami is the method by which a server returns its name.
const whoami anser.Method[anser.None, Name] = "Test.Who"

// start runs a server and announces it in the registry; its name is its ID.
func start(t testing.TB, reg registry.Registrar, in registry.Instance) *anser.Server {
	t.Helper()
	in.Service = "test"
	s := anser.NewServer(silent, anser.Announce(reg, in), anser.NoSignals())
	answer := func(context.Context, *anser.None) (*Name, error) { return &Name{in.ID}, nil }
	must(t, whoami.Handle(s, answer))
	must(t, anser.Handle(s, "Test.Other", answer))
	must(t, anser.Handle(s, "Test.Fail", func(context.Context, *anser.None) (*Name, error) {
		return nil, anser.Errorf(anser.NotFound, "there is no such thing")
	}))
	must(t, anser.Handle(s, "Test.Slow", func(ctx context.Context, _ *anser.None) (*Name, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lasting is a view of a Memory for whose instances and rules clients keep snapshots.
type lasting struct{ *registry.Memory }

// scheme returns the scheme of a registry in memory.
func scheme(m *registry.Memory) registry.Scheme {
	return registry.Scheme{Name: "mem", Open: func(*url.URL) (registry.Resolver, string, error) {
		return lasting{m.Join()}, "test", nil
	}}
}

func dial(t testing.TB, m *registry.Memory, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	c, err := anser.Dial("mem://test", append([]anser.DialOption{silent, scheme(m), anser.NoSnapshot()}, opts...)...)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// set replaces the rules of the service.
func set(t testing.TB, store registry.Store, rules string) *route.Document {
	t.Helper()
	d, err := route.Parse([]byte(`{"rules":` + rules + `}`))
	must(t, err)
	now, err := route.Load(t.Context(), store, "test")
	must(t, err)
	now, err = route.Save(t.Context(), store, "test", now.Version, d.Rules, "tester", "for a test")
	must(t, err)
	return now
}

// await waits until the client has that version of the rules and all instances.
func await(t testing.TB, c *anser.Client, version uint64, instances int) {
	t.Helper()
	eventually(t, fmt.Sprintf("version %d and %d instances", version, instances), func() bool {
		st := c.Status()
		return st.Rules != nil && st.Rules.Version == version && len(st.Instances) == instances
	})
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// count makes n calls and returns how often each instance answered.
func count(t testing.TB, c *anser.Client, n int, md anser.Metadata) map[string]int {
	t.Helper()
	ctx := t.Context()
	if md != nil {
		ctx = anser.WithMetadata(ctx, md)
	}
	names := make(map[string]int)
	for range n {
		reply, err := whoami.Call(ctx, c, new(anser.None))
		must(t, err)
		names[reply.Name]++
	}
	return names
}

// only fails unless all calls were answered by these instances.
func only(t testing.TB, got map[string]int, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("answered by %v, want by %v", got, want)
		return
	}
	for _, name := range want {
		if got[name] == 0 {
			t.Errorf("answered by %v, want by %v", got, want)
		}
	}
}
