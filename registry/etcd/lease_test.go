package etcd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

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
	in := regtest.Instance("unix:///run/a.sock")
	in.Zone = "north"
	regtest.Register(t, r, in)
	key, value := prefix+"/arith/unix:%2F%2F%2Frun%2Fa.sock", `{"service":"arith","address":"unix:///run/a.sock","zone":"north"}`
	if got := keys(t, raw, prefix); len(got) != 1 || got[key] != value {
		t.Errorf("etcd has %q, want %s = %s", got, key, value)
	}
}

func TestDeletedKeyComesBack(t *testing.T) {
	t.Parallel()
	prefix, raw := freshPrefix(), shared.use(t)
	r := shared.dial(t, etcd.Prefix(prefix))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	regtest.Register(t, r, regtest.Instance("h2:1"))
	regtest.Back(t, regtest.BackWithin, "both instances", func() {
		if _, err := raw.Delete(t.Context(), prefix, clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
	}, func() bool { return regtest.Addresses(t, r) == "h1:1 h2:1" })
	if n := len(keys(t, raw, prefix)); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// A process whose key was taken over leaves it to the new owner, even if both lose their leases
// and the old one notices first.
func TestKeyTakenOverIsNotFoughtFor(t *testing.T) {
	var logs testlog.Buffer
	prefix, raw := freshPrefix(), shared.use(t)
	old := shared.dial(t, etcd.Prefix(prefix), etcd.TTL(time.Second), // three renewals per second
		etcd.Logger(logs.Logger()))
	regtest.Register(t, old, regtest.Instance("h1:1"))
	regtest.Register(t, old, regtest.Instance("h2:1"))
	fresh := shared.dial(t, etcd.Prefix(prefix))
	taken := regtest.Instance("h1:1")
	taken.Version = "2"
	regtest.Register(t, fresh, taken)
	regtest.Eventually(t, regtest.Patience, "the old owner letting go", func() bool { return strings.Contains(logs.String(), "taken an instance over") })
	before := modRevision(t, raw, prefix+"/arith/h1:1")
	regtest.Back(t, regtest.BackWithin, "the record of the new owner", func() { forgetLeases(t, shared) }, func() bool {
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
	regtest.Register(t, dead, regtest.Instance("h1:1"))
	w := regtest.NewWatch(t, shared.dial(t, etcd.Prefix(prefix)))
	w.Await("h1:1")
	c.Close() // from here on, the process sends nothing
	w.Await("")
}

func TestNewLeavesTheClientOpen(t *testing.T) {
	c := shared.use(t)
	prefix := freshPrefix()
	r, err := etcd.New(c, etcd.Prefix(prefix))
	if err != nil {
		t.Fatal(err)
	}
	regtest.Register(t, r, regtest.Instance("h1:1"))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, c, prefix); len(got) != 0 {
		t.Errorf("Close left %q", got)
	}
}

// The server comes back without its data: watches must not wait for the revision they knew, and
// servers announce themselves again.
func TestServerComesBackEmpty(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	announcer, client := s.dial(t), s.dial(t)
	for _, address := range []string{"h1:1", "h2:1", "h3:1"} {
		regtest.Register(t, announcer, regtest.Instance(address))
	}
	w := regtest.NewWatch(t, client)
	w.Await("h1:1 h2:1 h3:1")
	regtest.Back(t, etcd.DefaultTTL/3+regtest.BackWithin, "all instances", func() {
		s.Stop()
		w.AwaitTrouble("")
		if err := os.RemoveAll(filepath.Join(s.dir, "data")); err != nil {
			t.Fatal(err)
		}
		s.start(t)
	}, func() bool { return regtest.Addresses(t, client) == "h1:1 h2:1 h3:1" })
	w.Await("h1:1 h2:1 h3:1")
}

func TestLoggerHearsOfLostLease(t *testing.T) {
	var logs testlog.Buffer
	prefix := freshPrefix()
	r := shared.dial(t, etcd.Prefix(prefix), etcd.Logger(logs.Logger()))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	if text := logs.String(); text != "" {
		t.Errorf("logged without need: %s", text)
	}
	forgetLeases(t, shared)
	regtest.Eventually(t, regtest.Patience, "a line in the log", func() bool { return strings.Contains(logs.String(), "dropped the lease") })
}
