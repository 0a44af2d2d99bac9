package e2e_test

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// ruled is a method whose servers return their name.
const ruled anser.Method[anser.None, string] = "Ruled.Who"

func startRuled(t *testing.T, address, id string) {
	t.Helper()
	reg, err := dialRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reg.Close() })
	s := anser.NewServer(anser.NoSignals(), anser.Announce(reg, registry.Instance{Service: service, ID: id}))
	if err := ruled.Handle(s, func(context.Context, *anser.None) (*string, error) { return &id, nil }); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
}

func within(t *testing.T, what string, f func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !f() {
		if time.Since(began) > time.Minute {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return time.Since(began)
}

// A change of the rules in etcd reaches every client, and rules outlast etcd.
func TestRulesReachEveryClient(t *testing.T) {
	const clients = 20
	etcd := startRegistry(t)
	address := etcd.config.Address
	startRuled(t, address, "a")
	startRuled(t, address, "b")
	store, err := dialRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	snapshots := anser.SnapshotDir(t.TempDir())
	dial := func() *anser.Client {
		c, err := anser.Dial("etcd://"+address+"/"+service, scheme(), snapshots, route.Rules(), anser.Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	list := make([]*anser.Client, clients)
	for i := range list {
		list[i] = dial()
	}
	within(t, "both instances everywhere", func() bool {
		return !slices.ContainsFunc(list, func(c *anser.Client) bool { return len(c.Status().Instances) < 2 })
	})
	var times []time.Duration
	for i := range 10 {
		id := []string{"a", "b"}[i%2]
		rules := route.RuleSet{Conditions: []route.ConditionRule{{To: route.Select{ID: route.Patterns{id}}, Strict: true}}}
		began := time.Now()
		d, err := route.Save(ctx, store, service, uint64(i), rules, "test", "")
		if err != nil {
			t.Fatal(err)
		}
		within(t, "the rules everywhere", func() bool {
			return !slices.ContainsFunc(list, func(c *anser.Client) bool {
				st := c.Status().Rules
				return st == nil || st.Version < d.Version
			})
		})
		times = append(times, time.Since(began))
		for _, c := range list {
			if got, err := ruled.Call(ctx, c, new(anser.None)); err != nil || *got != id {
				t.Fatalf("a client under version %d got %v, %v: want %s", d.Version, got, err, id)
			}
		}
	}
	slices.Sort(times)
	t.Logf("from the beginning of a change until all of %d clients had it: median %v, worst %v", clients, times[len(times)/2], times[len(times)-1])
	if worst := times[len(times)-1]; worst > 30*time.Second {
		t.Errorf("a change took %v", worst)
	}

	etcd.kill()
	late := dial()
	if got, err := ruled.Call(ctx, late, new(anser.None)); err != nil || *got != "b" {
		t.Errorf("a client that began without etcd got %v, %v: want b, by the saved rules", got, err)
	}
	if st := late.Status(); st.Rules == nil || !st.Rules.Saved || !st.Snapshot {
		t.Errorf("status %+v: want saved rules and instances", st)
	}
	if got, err := ruled.Call(ctx, list[0], new(anser.None)); err != nil || *got != "b" {
		t.Errorf("a client that had rules got %v, %v: want b", got, err)
	}
}
