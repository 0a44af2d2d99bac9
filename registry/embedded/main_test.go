package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

// childEnv holds the configuration of a member that the test binary runs instead of the tests.
const childEnv = "ANSER_EMBEDDED_CONFIG"

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		runChild(text)
		return
	}
	code := m.Run()
	// Connections between members take up to five seconds to end, and a member whose start was
	// abandoned still starts and stops.
	for deadline := time.Now().Add(regtest.Patience); code == 0; {
		err := goleak.Find()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			log.Print(err)
			code = 1
		}
	}
	os.Exit(code)
}

// runChild runs a member until the process receives a signal or is killed.
func runChild(text string) {
	var cfg embedded.Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	m, err := embedded.Start(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	<-ctx.Done()
	if err := m.Close(); err != nil {
		log.Fatal(err)
	}
}

// child is a member in its own process.
type child struct {
	t   *testing.T
	cfg embedded.Config
	cmd *exec.Cmd
}

func startChild(t *testing.T, cfg embedded.Config) *child {
	c := &child{t: t, cfg: cfg}
	c.start()
	t.Cleanup(c.kill)
	return c
}

// start starts the process without waiting until it serves.
func (c *child) start() {
	c.t.Helper()
	c.cmd = c.command()
	c.cmd.Stderr = os.Stderr
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) command() *exec.Cmd {
	c.t.Helper()
	text, err := json.Marshal(c.cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	return cmd
}

// kill kills the process, as kill -9 does.
func (c *child) kill() {
	if c.cmd != nil {
		c.cmd.Process.Kill()
		c.cmd.Wait()
		c.cmd = nil
	}
}

func start(t *testing.T, cfg embedded.Config) *embedded.Member {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), regtest.Patience)
	defer cancel()
	m, err := embedded.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func dial(t *testing.T, endpoints []string, opts ...etcd.DialOption) *etcd.Registry {
	t.Helper()
	r, err := etcd.Dial(endpoints, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// expect waits for the registry's answer and compares its addresses with want.
func expect(t *testing.T, r registry.Resolver, want string) {
	t.Helper()
	list, err := registry.List(regtest.Within(t), r, "arith")
	if err != nil {
		t.Fatal(err)
	}
	if got := regtest.Brief(list); got != want {
		t.Fatalf("list has %q, want %q", got, want)
	}
}

// forgetLeases revokes all leases of the cluster.
func forgetLeases(t *testing.T, endpoints []string) {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	leases, err := c.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leases.Leases {
		if _, err := c.Revoke(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
}

var prefixes atomic.Int64

// freshPrefix returns a prefix that no other test uses.
func freshPrefix() string { return fmt.Sprintf("/test/%d", prefixes.Add(1)) }

func ExampleStart() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	ctx := context.Background()

	member, err := embedded.Start(ctx, embedded.Config{Dir: filepath.Join(dir, "registry")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer member.Close()
	reg, err := member.Registry()
	if err != nil {
		fmt.Println(err)
		return
	}
	reg.Register(ctx, registry.Instance{Service: "arith", Address: "10.0.0.1:8972"})

	// Another process knows the endpoint, for example from its configuration.
	client, err := etcd.Dial([]string{member.Endpoint()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	list, err := registry.List(ctx, client, "arith")
	fmt.Println(list[0].Address, err)
	// Output: 10.0.0.1:8972 <nil>
}
