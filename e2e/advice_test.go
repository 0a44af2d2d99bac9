package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anser-rpc/anser"
)

// startProxy puts a proxy in front of the address, which is closed when the test ends.
func startProxy(t *testing.T, address string) *toxiproxy.Proxy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, t.Name(), freeAddress(), address)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// cut lets nothing through any more, in either direction and without a word: connections stay.
func cut(t *testing.T, p *toxiproxy.Proxy) {
	t.Helper()
	for _, way := range []string{"upstream", "downstream"} {
		toxic := fmt.Sprintf(`{"name": "cut %s", "type": "timeout", "stream": %q, "attributes": {"timeout": 0}}`, way, way)
		if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			t.Fatal(err)
		}
	}
}

// mend takes that back.
func mend(t *testing.T, p *toxiproxy.Proxy) {
	t.Helper()
	for _, way := range []string{"upstream", "downstream"} {
		if err := p.Toxics.RemoveToxic(context.Background(), "cut "+way); err != nil {
			t.Fatal(err)
		}
	}
}

// startsFromSnapshot makes a client while the registry is away, and its first calls.
func startsFromSnapshot(t *testing.T, registry, snapshots string, opts ...anser.DialOption) {
	t.Helper()
	began := time.Now()
	late := dialService(t, registry, snapshots, opts...)
	for i := range 100 {
		in := &Entry{ID: fmt.Sprintf("late-%d-%d", time.Now().UnixNano(), i)}
		if _, err := appendEntry.Call(context.Background(), late, in); err != nil {
			t.Errorf("call %d of a client that started without its registry: %v", i, err)
		}
		if i == 0 {
			t.Logf("the first call of a client that started without its registry took %v", time.Since(began))
		}
	}
	if st := late.Status(); !st.Snapshot || st.Saved.IsZero() || !st.Updated.IsZero() {
		t.Errorf("the client that started without its registry: %+v", st)
	}
}

// The registry loses all of its keys under load, again and again for some time. No call fails, and
// servers are back in it when that is over.
func TestRegistryEmptied(t *testing.T) {
	reg := startRegistry(t)
	c := config{Registry: reg.config.Address, Ledger: string(newLedger(t))}
	instances := startInstances(t, 3, c)
	w := watch(t, reg.config.Address)
	w.waitFor(instances)
	client := dialService(t, reg.config.Address, t.TempDir())
	calls := startLoad(t, "plain", client, 32)
	eventually(t, "the client knows all instances", func() bool { return len(client.Status().Instances) == len(instances) })

	db, err := clientv3.New(clientv3.Config{Endpoints: []string{reg.config.Address}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	held := 0
	began := time.Now()
	end := began.Add(faultTime(5*time.Second, time.Minute))
	for ; time.Now().Before(end) || held == 0 && time.Since(began) < 2*bound; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		if _, err := db.Delete(ctx, "", clientv3.WithFromKey()); err != nil {
			t.Error(err)
		}
		cancel()
		st := client.Status()
		if len(st.Instances) != len(instances) {
			t.Errorf("the client has %d instances", len(st.Instances))
		}
		for _, in := range st.Instances {
			if in.Held {
				held++
			}
		}
	}
	if held == 0 {
		t.Error("no instance was ever held back: did the registry lose its keys?")
	}
	calls.progress()
	w.waitFor(instances)
	eventually(t, "no instance is held back", func() bool {
		for _, in := range client.Status().Instances {
			if in.Held {
				return false
			}
		}
		return true
	})
	calls.stop()
	calls.mustNotFail()
}

// The way to the registry swallows everything under load. No call fails, the status says since
// when the list may be out of date, a client that starts meanwhile uses the snapshot, and
// afterwards the registry is heard again.
func TestRegistryPartitioned(t *testing.T) {
	reg := startRegistry(t)
	book := newLedger(t)
	c := config{Registry: reg.config.Address, Ledger: string(book)}
	instances := startInstances(t, 3, c)
	watch(t, reg.config.Address).waitFor(instances)
	proxy := startProxy(t, reg.config.Address)
	snapshots := t.TempDir()
	client := dialService(t, proxy.Listen, snapshots)
	calls := startLoad(t, "plain", client, 32)
	eventually(t, "the client knows all instances", func() bool { return len(client.Status().Instances) == len(instances) })

	cut(t, proxy)
	over := time.After(faultTime(0, 10*time.Minute))
	eventually(t, "the client knows that the registry is away", func() bool { return client.Status().Trouble != nil })
	if st := client.Status(); st.Since.IsZero() || st.Updated.IsZero() || st.Snapshot || len(st.Instances) != len(instances) {
		t.Errorf("%+v", st)
	}
	startsFromSnapshot(t, proxy.Listen, snapshots)
	calls.progress()
	<-over
	mend(t, proxy)
	eventually(t, "the client hears the registry again", func() bool {
		st := client.Status()
		return st.Trouble == nil && st.Since.IsZero()
	})
	calls.progress()
	calls.stop()
	calls.mustNotFail()
	book.check(t, calls, false)
}

// The registry is killed, and a client starts that has never heard of it but has the snapshot of
// another.
func TestStartWithoutRegistry(t *testing.T) {
	reg := startRegistry(t)
	c := config{Registry: reg.config.Address, Ledger: string(newLedger(t))}
	instances := startInstances(t, 3, c)
	snapshots := t.TempDir()
	client := dialService(t, reg.config.Address, snapshots)
	eventually(t, "the client knows all instances", func() bool { return len(client.Status().Instances) == len(instances) })
	if err := client.Close(); err != nil { // so that its snapshot is complete
		t.Fatal(err)
	}
	reg.kill()
	startsFromSnapshot(t, reg.config.Address, snapshots)
}
