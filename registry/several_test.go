package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/registrytest"
)

func TestSeveral(t *testing.T) {
	t.Run("memory and memory", func(t *testing.T) {
		registrytest.RunInBubble(t, func(t *testing.T) registrytest.Fixture {
			a, b := registry.NewMemory(), registry.NewMemory()
			return registrytest.Fixture{Open: func() registry.Registry { return several(t, a.Join(), b.Join()) }}
		}, registrytest.Outages, registrytest.Leases)
	})
	t.Run("file and memory", func(t *testing.T) {
		registrytest.RunInBubble(t, func(t *testing.T) registrytest.Fixture {
			path := writeFile(t, "[]")
			m := registry.NewMemory()
			return registrytest.Fixture{Open: func() registry.Registry { return several(t, openFile(t, path), m.Join()) }}
		}, registrytest.Outages, registrytest.Leases)
	})
	t.Run("with outages", func(t *testing.T) {
		registrytest.RunInBubble(t, func(t *testing.T) registrytest.Fixture {
			a, b := newMoody(), newMoody()
			return registrytest.Fixture{
				Open:  func() registry.Registry { return several(t, a.join(), b.join()) },
				Stop:  func() { a.set(true); b.set(true) },
				Start: func() { a.set(false); b.set(false) },
			}
		}, registrytest.Leases, registrytest.Documents)
	})
	t.Run("without one that announces", func(t *testing.T) {
		registrytest.RunInBubble(t, func(t *testing.T) registrytest.Fixture {
			in := registry.Instance{Service: "arith", Address: "h:1"}
			other := registry.Instance{Service: "echo", Address: "h:2"}
			return registrytest.Fixture{
				Resolver:  several(t, static(t, in), static(t, other, in)),
				Instances: []registry.Instance{in, other},
			}
		}, registrytest.Announcing, registrytest.Outages, registrytest.Leases, registrytest.Documents)
	})
}

func several(t *testing.T, members ...registry.Resolver) registry.Registry {
	t.Helper()
	r, err := registry.Several(members...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func static(t *testing.T, instances ...registry.Instance) *registry.Static {
	t.Helper()
	s, err := registry.NewStatic(instances...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// moody is a memory registry behind a server that can be made unavailable.
type moody struct {
	*registry.Memory
	server *moodyServer
	closed chan struct{}
	once   *sync.Once
}

type moodyServer struct {
	mu      sync.Mutex
	away    bool
	changed chan struct{}
}

func newMoody() *moody {
	return &moody{registry.NewMemory(), &moodyServer{changed: make(chan struct{})}, make(chan struct{}), new(sync.Once)}
}

func (m *moody) join() *moody {
	return &moody{m.Memory.Join(), m.server, make(chan struct{}), new(sync.Once)}
}

func (m *moody) set(away bool) {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	if m.server.away != away {
		m.server.away = away
		close(m.server.changed)
		m.server.changed = make(chan struct{})
	}
}

func (m *moody) state() (away bool, changed <-chan struct{}) {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	return m.server.away, m.server.changed
}

var errAway = errors.New("nobody answers")

// wait waits until the server is available.
func (m *moody) wait(ctx context.Context) error {
	for {
		away, changed := m.state()
		if !away {
			return nil
		}
		select {
		case <-changed:
		case <-m.closed:
			return registry.ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), errAway)
		}
	}
}

func (m *moody) Register(ctx context.Context, in registry.Instance) error {
	if err := in.Validate(); err != nil {
		return err
	}
	if err := m.wait(ctx); err != nil {
		return err
	}
	return m.Memory.Register(ctx, in)
}

func (m *moody) Deregister(ctx context.Context, in registry.Instance) error {
	if err := m.wait(ctx); err != nil {
		return err
	}
	return m.Memory.Deregister(ctx, in)
}

func (m *moody) Services(ctx context.Context) ([]string, error) {
	if err := m.wait(ctx); err != nil {
		return nil, err
	}
	return m.Memory.Services(ctx)
}

func (m *moody) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	for {
		away, changed := m.state()
		if away {
			trouble(errAway)
			if err := m.wait(ctx); err != nil {
				if e := ctx.Err(); e != nil {
					return e
				}
				return err
			}
			continue
		}
		calm, cancel := context.WithCancel(ctx)
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			select {
			case <-changed:
				cancel()
			case <-calm.Done():
			}
		}()
		err := m.Memory.Watch(calm, service, update, trouble)
		cancel()
		<-stop
		if ctx.Err() != nil || !errors.Is(err, context.Canceled) {
			return err
		}
	}
}

func (m *moody) Close() error {
	m.once.Do(func() { close(m.closed) })
	return m.Memory.Close()
}

func instance(address string) registry.Instance {
	return registry.Instance{Service: "arith", Address: address}
}

// addresses returns the addresses in a registry, as seen by a new watch.
func addresses(t *testing.T, r registry.Resolver) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	list, err := registry.List(ctx, r, "arith")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, in := range list {
		all = append(all, in.Address+in.Zone)
	}
	return all
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSeveralKeepsTryingWhereItFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := registry.NewMemory(), newMoody()
		r := several(t, good.Join(), bad.join())
		defer r.Close()
		bad.set(true)
		err := r.Register(t.Context(), instance("h:1"))
		if !errors.Is(err, errAway) || !strings.Contains(err.Error(), "1 of 2 registries have it") || !strings.Contains(err.Error(), "registry 2 (*registry_test.moody)") {
			t.Errorf("Register = %v, want to be told which one failed", err)
		}
		if err := r.Register(t.Context(), instance("h:2")); err == nil {
			t.Error("Register says that a registry that is away has the instance")
		}
		if err := r.Deregister(t.Context(), instance("h:2")); err == nil {
			t.Error("Deregister says that a registry that is away has the change")
		}
		want(t, addresses(t, good), "h:1")
		bad.set(false)
		time.Sleep(time.Minute) // on the bubble's fake clock
		want(t, addresses(t, bad), "h:1")
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		want(t, addresses(t, good))
		want(t, addresses(t, bad))
	})
}

// A change that failed on all members must not succeed later.
func TestSeveralFailsWhereAllFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newMoody(), newMoody()
		r := several(t, a.join(), b.join())
		defer r.Close()
		a.set(true)
		b.set(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Register(ctx, instance("h:1")); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errAway) {
			t.Errorf("Register = %v", err)
		}
		a.set(false)
		b.set(false)
		time.Sleep(time.Minute) // on the bubble's fake clock
		want(t, addresses(t, r))
	})
}

func TestSeveralCloseEndsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := registry.NewMemory(), newMoody()
		bad.set(true)
		r := several(t, good.Join(), bad.join())
		if err := r.Register(t.Context(), instance("h:1")); err == nil {
			t.Error("Register into a registry that is away")
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		bad.set(false)
		time.Sleep(time.Minute) // on the bubble's fake clock
		want(t, addresses(t, bad))
		want(t, addresses(t, good))
	})
}

func TestSeveralMerges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newMoody(), newMoody()
		r := several(t, a.join(), b.join())
		defer r.Close()
		put := func(m *moody, address, zone string) {
			in := instance(address)
			in.Zone = zone
			if err := m.Memory.Register(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		put(a, "h:1", "a")
		put(b, "h:1", "b")
		put(b, "h:2", "b")
		ctx, cancel := context.WithCancel(t.Context())
		var said []string
		var wg sync.WaitGroup
		wg.Go(func() {
			r.Watch(ctx, "arith", func(list []registry.Instance) {
				line := ""
				for _, in := range list {
					line += in.Address + in.Zone + " "
				}
				said = append(said, line)
			}, func(err error) { said = append(said, err.Error()) })
		})
		after := func(d time.Duration) []string {
			time.Sleep(d) // on the bubble's fake clock
			synctest.Wait()
			now := said
			said = nil
			return now
		}
		away := "registry 2 (*registry_test.moody): nobody answers"
		want(t, after(0), "h:1a h:2b ")
		b.set(true)
		want(t, after(time.Minute), away) // b's last list stays
		put(a, "g:1", "a")
		want(t, after(time.Minute), "g:1a h:1a h:2b ", away) // the others continue; b is still away
		b.set(false)
		want(t, after(0), "g:1a h:1a h:2b ") // reported although nothing changed: the list is current again
		put(b, "h:1", "c")
		want(t, after(0)) // hidden by the instance of the first registry
		a.Memory.Deregister(t.Context(), instance("h:1"))
		want(t, after(0), "g:1a h:1c h:2b ")
		cancel()
		wg.Wait()
	})
}

// silent calls neither update nor trouble.
type silent struct{}

func (silent) Watch(ctx context.Context, _ string, _ func([]registry.Instance), _ func(error)) error {
	<-ctx.Done()
	return ctx.Err()
}

// hopeless fails permanently.
type hopeless struct{}

func (hopeless) Watch(context.Context, string, func([]registry.Instance), func(error)) error {
	return errAway
}

func TestSeveralDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := several(t, silent{}, static(t, instance("h:1")))
		defer r.Close()
		want(t, addresses(t, r), "h:1")
		if took := time.Since(began); took < time.Second || took > 10*time.Second {
			t.Errorf("the first list came after %v", took)
		}
		began = time.Now()
		want(t, addresses(t, several(t, hopeless{}, static(t, instance("h:1")))), "h:1")
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %v for a registry that is in trouble", took)
		}
		err := several(t, hopeless{}, hopeless{}).Watch(t.Context(), "arith", func([]registry.Instance) { t.Error("update") }, nil)
		if !errors.Is(err, errAway) {
			t.Errorf("Watch = %v, want the error of the registries", err)
		}
	})
}

// restless reports trouble, and right after it an update.
type restless struct{ registry.Resolver }

func (restless) Watch(ctx context.Context, _ string, update func([]registry.Instance), trouble func(error)) error {
	for i := range 100 {
		trouble(errAway)
		update([]registry.Instance{instance(fmt.Sprintf("h:%d", i+1))})
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestSeveralTellsNoTroubleThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			r := several(t, restless{}, static(t, instance("h:1")))
			r.Watch(ctx, "arith", func(list []registry.Instance) {
				if slices.ContainsFunc(list, func(in registry.Instance) bool { return in.Address == "h:100" }) {
					cancel()
				}
			}, func(err error) {
				if err == nil {
					t.Fatal("trouble without an error")
				}
			})
			cancel()
			r.Close()
		}
	})
}

func TestSeveralServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := registry.NewMemory(), newMoody()
		r := several(t, a.Join(), b.join(), silent{})
		defer r.Close()
		a.Register(t.Context(), instance("h:1"))
		b.Register(t.Context(), registry.Instance{Service: "echo", Address: "h:2"})
		names, err := r.Services(t.Context())
		if err != nil {
			t.Error(err)
		}
		want(t, names, "arith", "echo")
		b.set(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		names, err = r.Services(ctx)
		if !errors.Is(err, errAway) {
			t.Errorf("Services = %v, want to be told who did not answer", err)
		}
		want(t, names, "arith")
	})
}

func TestSeveralOfNone(t *testing.T) {
	if _, err := registry.Several(); err == nil {
		t.Error("several registries of none")
	}
	if _, err := registry.Several(registry.NewMemory(), nil); err == nil || !strings.Contains(err.Error(), "number 2") {
		t.Errorf("Several(…, nil) = %v", err)
	}
	r := several(t, silent{}, static(t))
	if err := r.Register(t.Context(), instance("h:1")); err == nil || !strings.Contains(err.Error(), "Registrar") {
		t.Errorf("Register = %v", err)
	}
	if _, err := several(t, silent{}).Services(t.Context()); err == nil || !strings.Contains(err.Error(), "Lister") {
		t.Errorf("Services = %v", err)
	}
	if _, ok := r.(registry.Store); ok {
		t.Error("it is a Store, although no member is one")
	}
	if _, ok := several(t, silent{}, registry.NewMemory()).(registry.Store); !ok {
		t.Error("it is no Store, although a member is one")
	}
}

// refreshing records the calls of Refresh.
type refreshing struct {
	hopeless
	asked []string
}

func (r *refreshing) Refresh(service string) { r.asked = append(r.asked, service) }

func TestSeveralScheme(t *testing.T) {
	path := writeFile(t, "["+line("h:1")+"]")
	far := &refreshing{}
	schemes := []registry.Scheme{
		{Name: "far", Open: func(u *url.URL) (registry.Resolver, string, error) {
			return far, u.Host, nil
		}},
		{Name: "other", Open: func(u *url.URL) (registry.Resolver, string, error) {
			return static(t, registry.Instance{Service: "arith.example.com", Address: "h:2"}), strings.TrimPrefix(u.Path, "/"), nil
		}},
		{Name: "broken", Open: func(*url.URL) (registry.Resolver, string, error) { return nil, "", errAway }},
	}
	open := func(target string, targets ...string) (registry.Resolver, string, error) {
		s := registry.SeveralScheme("shop", schemes, targets...)
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		return s.Open(u)
	}
	r, service, err := open("shop:///arith", "file://"+path, "other:///{service}.example.com", "far://{service}.far")
	if err != nil || service != "arith" {
		t.Fatalf("%q, %v", service, err)
	}
	want(t, addresses(t, r), "h:1", "h:2")
	r.(registry.Refresher).Refresh("arith")
	want(t, far.asked, "arith.far")
	if err := r.(registry.Registry).Close(); err != nil {
		t.Error(err)
	}
	for target, say := range map[string]string{
		"shop://host/arith": "want shop:///service",
		"shop:///arith?x=1": "want shop:///service",
		"shop:///":          "has no name",
		"shop:///a/b":       "use letters",
	} {
		if _, _, err := open(target, "file://"+path); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s = %v, want %q", target, err, say)
		}
	}
	for target, say := range map[string]string{
		"etcd://h:2379": `unknown scheme "etcd": give SeveralScheme`,
		"broken://h":    "nobody answers",
		"://":           "missing protocol scheme",
		"file:///":      "want file:///path",
	} {
		if _, _, err := open("shop:///arith", "file://"+path, target); err == nil || !strings.Contains(err.Error(), say) || !strings.Contains(err.Error(), target) {
			t.Errorf("%s = %v, want %q", target, err, say)
		}
	}
	if _, _, err := open("shop:///arith"); err == nil {
		t.Error("a scheme of no registries")
	}
}

func ExampleSeveral() {
	old, fresh := registry.NewMemory(), registry.NewMemory() // two etcd clusters, for example
	both, err := registry.Several(old, fresh)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer both.Close()
	ctx := context.Background()
	both.Register(ctx, registry.Instance{Service: "arith", Address: "10.0.0.1:8972"})
	for _, r := range []registry.Resolver{old, fresh, both} {
		list, _ := registry.List(ctx, r, "arith")
		fmt.Println(len(list), list[0].Address)
	}
	// Output:
	// 1 10.0.0.1:8972
	// 1 10.0.0.1:8972
	// 1 10.0.0.1:8972
}
