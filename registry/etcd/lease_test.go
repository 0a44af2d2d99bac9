package etcd_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
)

// backWithin is how long an instance may be away that the registry forgot while its process lives.
const backWithin = 5 * time.Second

func instance(address string) registry.Instance {
	return registry.Instance{Service: "arith", Address: address}
}

func register(t *testing.T, r registry.Registrar, in registry.Instance) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := r.Register(ctx, in); err != nil {
		t.Fatal(err)
	}
}

// eventually polls until ok, and fails the test after patience.
func eventually(t *testing.T, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not seen within %v: %s", patience, what)
		}
	}
}

// addresses returns what the registry lists for the service arith, or the error.
func addresses(t *testing.T, r registry.Resolver) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	list, err := registry.List(ctx, r, "arith")
	if err != nil {
		return err.Error()
	}
	var texts []string
	for _, in := range list {
		texts = append(texts, in.Address)
	}
	return strings.Join(texts, " ")
}

// keys returns the keys and values under the prefix, as any etcd client sees them.
func keys(t *testing.T, c *clientv3.Client, prefix string) map[string]string {
	t.Helper()
	resp, err := c.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, kv := range resp.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all
}

func TestRecordInEtcd(t *testing.T) {
	prefix, raw := freshPrefix(), shared.use(t)
	r := shared.dial(t, etcd.Prefix(prefix))
	in := instance("unix:///run/a.sock")
	in.Zone = "north"
	register(t, r, in)
	key, value := prefix+"/arith/unix:%2F%2F%2Frun%2Fa.sock", `{"service":"arith","address":"unix:///run/a.sock","zone":"north"}`
	if got := keys(t, raw, prefix); len(got) != 1 || got[key] != value {
		t.Errorf("etcd has %q, want %s = %s", got, key, value)
	}
}

func TestDeletedKeyComesBack(t *testing.T) {
	t.Parallel()
	prefix, raw := freshPrefix(), shared.use(t)
	r := shared.dial(t, etcd.Prefix(prefix))
	register(t, r, instance("h1:1"))
	register(t, r, instance("h2:1"))
	if _, err := raw.Delete(t.Context(), prefix, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	eventually(t, backWithin, "both instances", func() bool { return addresses(t, r) == "h1:1 h2:1" })
	if n := len(keys(t, raw, prefix)); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// A process whose key was taken over leaves it to the new owner, also when both lose their leases
// and the old one is the first to notice.
func TestKeyTakenOverIsNotFoughtFor(t *testing.T) {
	var logs lockedBuffer
	prefix, raw := freshPrefix(), shared.use(t)
	old := shared.dial(t, etcd.Prefix(prefix), etcd.TTL(time.Second), // renews three times a second
		etcd.Logger(slog.New(slog.NewTextHandler(&logs, nil))))
	register(t, old, instance("h1:1"))
	register(t, old, instance("h2:1"))
	fresh := shared.dial(t, etcd.Prefix(prefix))
	taken := instance("h1:1")
	taken.Version = "2"
	register(t, fresh, taken)
	eventually(t, backWithin, "the old owner letting go", func() bool { return strings.Contains(logs.String(), "taken an instance over") })
	before := modRevision(t, raw, prefix+"/arith/h1:1")
	forgetLeases(t, shared)
	eventually(t, backWithin, "the record of the new owner", func() bool {
		list, err := registry.List(t.Context(), old, "arith")
		return err == nil && len(list) == 2 && list[0].Equal(taken)
	})
	if modRevision(t, raw, prefix+"/arith/h1:1") == before {
		t.Error("the lease was not lost at all")
	}
}

func modRevision(t *testing.T, c *clientv3.Client, key string) int64 {
	t.Helper()
	resp, err := c.Get(t.Context(), key)
	if err != nil || len(resp.Kvs) != 1 {
		t.Fatalf("%s: %v, %v", key, resp, err)
	}
	return resp.Kvs[0].ModRevision
}

func TestInstancesOfADeadProcessGo(t *testing.T) {
	t.Parallel()
	prefix := freshPrefix()
	c, err := shared.client()
	if err != nil {
		t.Fatal(err)
	}
	dead, err := etcd.New(c, etcd.Prefix(prefix), etcd.TTL(2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dead.Close() })
	register(t, dead, instance("h1:1"))
	c.Close() // nothing leaves the process any more
	r := shared.dial(t, etcd.Prefix(prefix))
	if got := addresses(t, r); got != "h1:1" {
		t.Errorf("list right after the death: %q", got)
	}
	eventually(t, 8*time.Second, "an empty list", func() bool { return addresses(t, r) == "" })
}

func TestNewLeavesTheClientOpen(t *testing.T) {
	c := shared.use(t)
	prefix := freshPrefix()
	r, err := etcd.New(c, etcd.Prefix(prefix))
	if err != nil {
		t.Fatal(err)
	}
	register(t, r, instance("h1:1"))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, c, prefix); len(got) != 0 {
		t.Errorf("Close left %q", got)
	}
}

// The server comes back without its data: watchers must not wait for the revision they knew, and
// servers announce themselves again.
func TestServerComesBackEmpty(t *testing.T) {
	t.Parallel()
	s := ownServer(t)
	announcer, client := s.dial(t), s.dial(t)
	for _, address := range []string{"h1:1", "h2:1", "h3:1"} {
		register(t, announcer, instance(address))
	}
	w := watchAddresses(t, client)
	w.await(t, "h1:1 h2:1 h3:1")
	s.stop()
	w.awaitTrouble(t)
	if err := os.RemoveAll(filepath.Join(s.dir, "data")); err != nil {
		t.Fatal(err)
	}
	restart(t, s)
	since := time.Now()
	eventually(t, etcd.DefaultTTL/3+backWithin, "all instances", func() bool { return addresses(t, client) == "h1:1 h2:1 h3:1" })
	w.await(t, "h1:1 h2:1 h3:1")
	t.Logf("announced again after %v", time.Since(since))
}

func TestLoggerHearsOfLostLease(t *testing.T) {
	var logs lockedBuffer
	prefix := freshPrefix()
	r := shared.dial(t, etcd.Prefix(prefix), etcd.TTL(time.Second), etcd.Logger(slog.New(slog.NewTextHandler(&logs, nil))))
	register(t, r, instance("h1:1"))
	if text := logs.String(); text != "" {
		t.Errorf("logged without need: %s", text)
	}
	forgetLeases(t, shared)
	eventually(t, backWithin, "a line in the log", func() bool { return strings.Contains(logs.String(), "dropped the lease") })
}

type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
