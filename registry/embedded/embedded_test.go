package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/anser-rpc/anser/internal/awake"
	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/registrytest"
)

// testTTL is longer than a pause of the machine: a lease that expires meanwhile would change the
// list.
const testTTL = 20 * time.Second

func TestConformance(t *testing.T) {
	t.Parallel()
	cfg := embedded.Config{Dir: t.TempDir(), Listen: servers.Address(t)}
	embedded.SetHasty(&cfg) // the suite measures the registry, not a shared disk
	m := start(t, cfg)
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		prefix := freshPrefix()
		return registrytest.Fixture{
			ServerInside: true,
			Open:         func() registry.Registry { return open(t, []string{cfg.Listen}, prefix) },
			Stop: func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			},
			Start: func() {
				var err error
				if m, err = embedded.Start(context.Background(), cfg); err != nil {
					t.Fatal(err)
				}
			},
			ForgetLeases: func() { forgetLeases(t, []string{cfg.Listen}) },
		}
	})
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// open returns a registry that the suite closes.
func open(t *testing.T, endpoints []string, prefix string) registry.Registry {
	t.Helper()
	ttl := testTTL
	if strings.HasSuffix(t.Name(), "/CloseDuringOutage") {
		ttl = 2 * time.Second // this test waits for it to expire
	}
	r, err := etcd.Dial(endpoints, etcd.Prefix(prefix), etcd.TTL(ttl))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRestartKeepsTheData(t *testing.T) {
	t.Parallel()
	cfg := embedded.Config{Dir: t.TempDir()}
	m := start(t, cfg)
	outside := dial(t, []string{m.Endpoint()}, etcd.TTL(time.Minute))
	regtest.Register(t, outside, regtest.Instance("h1:1"), regtest.Instance("h2:1")) // its lease outlives the member
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	again := start(t, cfg) // on another port
	r, err := again.Registry()
	if err != nil {
		t.Fatal(err)
	}
	expect(t, r, "h1:1 h2:1")
}

func TestKilledProcessKeepsTheData(t *testing.T) {
	t.Parallel()
	cfg := embedded.Config{Dir: t.TempDir(), Listen: servers.Address(t)}
	c := startChild(t, cfg)
	r := dial(t, []string{cfg.Listen})
	regtest.Register(t, r, regtest.Instance("h1:1"), regtest.Instance("h2:1"))
	c.kill()
	c.start()
	expect(t, r, "h1:1 h2:1")
	regtest.Register(t, r, regtest.Instance("h3:1"))
	expect(t, r, "h1:1 h2:1 h3:1")
}

func TestCloseIsGraceful(t *testing.T) {
	t.Parallel()
	m := start(t, embedded.Config{Dir: t.TempDir()})
	r, err := m.Registry()
	if err != nil {
		t.Fatal(err)
	}
	regtest.Register(t, r, regtest.Instance("h1:1"))
	outside := dial(t, []string{m.Endpoint()})
	regtest.Register(t, outside, regtest.Instance("h2:1")) // with a stream for its lease and one for a watch
	updated := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() {
		watched <- outside.Watch(ctx, "arith", func([]registry.Instance) { updated <- struct{}{} }, nil)
	}()
	<-updated
	clock := awake.Start() // a pause of the machine does not count as etcd waiting
	err = m.Close()
	if d := clock.Stop(); d > 5*time.Second {
		t.Errorf("Close took %v, with watches and leases open: want it to end them", d)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Register(t.Context(), regtest.Instance("h3:1")); !errors.Is(err, registry.ErrClosed) {
		t.Errorf("Register after the member was closed = %v, want ErrClosed", err)
	}
	if _, err := m.Registry(); err == nil {
		t.Error("a closed member gives a registry")
	}
	if err := m.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	if m.Err() != nil {
		t.Errorf("a member that was closed says it failed: %v", m.Err())
	}
	cancel()
	<-watched
}

func TestDirectoryInUse(t *testing.T) {
	t.Parallel()
	cfg := embedded.Config{Dir: t.TempDir()}
	start(t, cfg)
	_, err := embedded.Start(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "use another directory") {
		t.Errorf("a second member in the same directory: %v", err)
	}
}

// Another program, which does not know the member's own lock, has the database open.
func TestDatabaseInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "member/snap"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "member/snap/db")
	other, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = embedded.Start(ctx, embedded.Config{Dir: dir})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another etcd") {
		t.Errorf("Start with the database in use = %v", err)
	}
	// The abandoned start continues with the database that is free now, and then stops. Until then
	// the directory is in use.
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	regtest.Eventually(t, regtest.Patience, "a log", func() bool {
		logs, _ := filepath.Glob(filepath.Join(dir, "member/wal/*.wal"))
		return len(logs) > 0
	})
	if other, err = bbolt.Open(file, 0o600, &bbolt.Options{Timeout: regtest.Patience}); err != nil {
		t.Fatal(err)
	}
	other.Close()
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	m := start(t, embedded.Config{Dir: t.TempDir()})
	_, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: m.Endpoint()})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second member on the same port: %v", err)
	}
}

// etcd would exit the process with all services in it. It leaves goroutines behind, so the test
// uses a process of its own.
func TestBrokenDataIsAnError(t *testing.T) {
	t.Parallel()
	cfg := embedded.Config{Dir: t.TempDir(), Listen: servers.Address(t)}
	c := startChild(t, cfg)
	regtest.Register(t, dial(t, []string{cfg.Listen}), regtest.Instance("h1:1"))
	c.kill()
	logs, err := filepath.Glob(filepath.Join(cfg.Dir, "member/wal/*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no log found: %v", err)
	}
	if err := os.WriteFile(logs[0], bytes.Repeat([]byte("broken"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := c.command()
	cmd.Stderr = &said
	err = cmd.Run()
	if err == nil || !strings.Contains(said.String(), "start the embedded registry in "+cfg.Dir) || strings.Contains(said.String(), "goroutine") {
		t.Errorf("start with a broken log: %v, and said %s", err, said.String())
	}
}

func TestFailureIsNotTheEndOfTheProcess(t *testing.T) {
	t.Parallel()
	cfg := embedded.Config{Dir: t.TempDir()}
	m := start(t, cfg)
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	m.Fail("failed to commit tx")
	<-m.Done()
	if err := m.Err(); err == nil || !strings.Contains(err.Error(), "failed to commit tx") {
		t.Errorf("Err = %v, want what etcd said", err)
	}
	if err := m.Close(); err == nil {
		t.Error("Close does not say that the member had failed")
	}
	if _, err := embedded.Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "or one that failed") {
		t.Errorf("Start after a failure in this process = %v", err)
	}
}

func TestFullDiskRefusesWrites(t *testing.T) {
	t.Parallel()
	var free atomic.Int64
	free.Store(1 << 30)
	var logs testlog.Buffer
	cfg := embedded.Config{Dir: t.TempDir(), Logger: logs.Logger()}
	embedded.SetFree(&cfg, free.Load)
	m := start(t, cfg)
	r, err := m.Registry(etcd.TTL(testTTL))
	if err != nil {
		t.Fatal(err)
	}
	regtest.Register(t, r, regtest.Instance("h1:1"))
	free.Store(1 << 20)
	regtest.Eventually(t, regtest.Patience, "writes are refused", func() bool { return errors.Is(tryRegister(t, r), rpctypes.ErrNoSpace) })
	expect(t, r, "h1:1") // reads still work
	awaitRenewal(t, m.Endpoint())
	if !strings.Contains(logs.String(), "nearly full") {
		t.Errorf("nobody was told: %s", logs.String())
	}
	free.Store(1 << 30)
	regtest.Register(t, r, regtest.Instance("h2:1"))
	expect(t, r, "h1:1 h2:1")
}

// awaitRenewal waits until the remaining time of the only lease has grown.
func awaitRenewal(t *testing.T, endpoint string) {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := c.Leases(regtest.Within(t))
	if err != nil || len(all.Leases) != 1 {
		t.Fatalf("leases %+v, %v: want one", all, err)
	}
	left := int64(math.MaxInt64)
	regtest.Eventually(t, regtest.Patience, "a renewal", func() bool {
		resp, err := c.TimeToLive(regtest.Within(t), all.Leases[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		before := left
		left = resp.TTL
		return left > before
	})
}

// tryRegister registers for at most five seconds.
func tryRegister(t *testing.T, r registry.Registrar) error {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return r.Register(ctx, registry.Instance{Service: "arith", Address: "h1:1", Weight: int(time.Now().UnixNano()%1000) + 1})
}
