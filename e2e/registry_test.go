package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/etcd"
)

// service is the name of the service that all tests call.
const service = "ledger"

// leaseTime is short, so that a test can wait for leases to run out.
const leaseTime = 3 * time.Second

// runRegistry is the role of a registry.
func runRegistry(c config) error {
	m, err := embedded.Start(context.Background(), embedded.Config{Dir: c.Dir, Listen: c.Address})
	if err != nil {
		return err
	}
	ready()
	<-m.Done() // else it is killed
	return m.Err()
}

// startRegistry starts a registry on empty data.
func startRegistry(t *testing.T) *process {
	t.Helper()
	return start(t, "registry", config{Address: freeAddress(), Dir: t.TempDir()})
}

func dialRegistry(address string) (*etcd.Registry, error) {
	return etcd.Dial([]string{address}, etcd.TTL(leaseTime))
}

// scheme supports "etcd://host:port/service" as a target.
func scheme() registry.Scheme {
	return registry.Scheme{Name: "etcd", Open: func(u *url.URL) (registry.Resolver, string, error) {
		endpoints, prefix, service, err := etcd.Parse(u)
		if err != nil {
			return nil, "", err
		}
		r, err := etcd.Dial(endpoints, etcd.Prefix(prefix))
		return r, service, err
	}}
}

// watcher holds the registry's list, as seen by a client.
type watcher struct {
	t *testing.T

	mu      sync.Mutex // guards what follows
	current bool       // the list is not older than the last trouble
	list    []string
}

// watch follows the service until the test ends.
func watch(t *testing.T, address string) *watcher {
	t.Helper()
	r, err := dialRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{t: t}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Watch(ctx, service, w.update, func(error) { w.lost() }); !errors.Is(err, context.Canceled) {
			t.Errorf("watch: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if err := r.Close(); err != nil {
			t.Errorf("close the registry's client: %v", err)
		}
	})
	return w
}

func (w *watcher) update(list []registry.Instance) {
	var addresses []string
	for _, in := range list {
		addresses = append(addresses, in.Address)
	}
	slices.Sort(addresses)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list, w.current = addresses, true
}

func (w *watcher) lost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current = false
}

// state returns the addresses of all records, sorted, and whether that is known to be current.
func (w *watcher) state() ([]string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list, w.current
}

// waitFor waits until the registry has exactly one record per instance, and no other.
func (w *watcher) waitFor(instances []*process) {
	w.t.Helper()
	want := addresses(instances)
	eventually(w.t, fmt.Sprintf("the registry lists %v", want), func() bool {
		list, current := w.state()
		return current && slices.Equal(list, want)
	})
}

// keeps checks for the duration that the registry's list does not change, and reports the result.
// The result is not useful if the machine was paused for so long that leases may have expired,
// which is not a failure.
func (w *watcher) keeps(instances []*process, d time.Duration) (kept, useful bool) {
	w.t.Helper()
	want := addresses(instances)
	last := time.Now()
	for end := last.Add(d); last.Before(end); time.Sleep(10 * time.Millisecond) {
		now := time.Now()
		if now.Sub(last) > leaseTime/3 { // a lease is renewed so often
			return true, false
		}
		if list, _ := w.state(); !slices.Equal(list, want) {
			w.t.Logf("the registry lists %v, and not %v any more", list, want)
			return false, true
		}
		last = now
	}
	return true, true
}

func addresses(instances []*process) []string {
	var all []string
	for _, p := range instances {
		all = append(all, p.config.Address)
	}
	slices.Sort(all)
	return all
}
