package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/registrytest"
)

func TestClusterConformance(t *testing.T) {
	t.Parallel()
	cfg := embedded.Config{Dir: t.TempDir()}
	embedded.SetHasty(&cfg) // the suite measures the registry, not a shared disk
	reservePorts(t, cfg.Dir)
	c := startCluster(t, cfg)
	endpoints := c.Endpoints()
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		prefix := freshPrefix()
		return registrytest.Fixture{
			ServerInside: true,
			Open:         func() registry.Registry { return open(t, endpoints, prefix) },
			Stop: func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			},
			Start: func() {
				var err error
				if c, err = embedded.StartCluster(context.Background(), cfg); err != nil {
					t.Fatal(err)
				}
			},
			ForgetLeases: func() { forgetLeases(t, endpoints) },
		}
	})
	loseOneMember(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// reservePorts stores ports in the directory of a cluster that no other test uses while the
// cluster is down.
func reservePorts(t *testing.T, dir string) {
	t.Helper()
	type ports struct {
		Client string `json:"client"`
		Peer   string `json:"peer"`
	}
	var all []ports
	for range 3 {
		all = append(all, ports{servers.Address(t), servers.Address(t)})
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func startCluster(t *testing.T, cfg embedded.Config) *embedded.Cluster {
	t.Helper()
	c, err := embedded.StartCluster(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// loseOneMember stops each member in turn, including the leader, while a watch runs.
func loseOneMember(t *testing.T, c *embedded.Cluster) {
	r, err := c.Registry()
	if err != nil {
		t.Fatal(err)
	}
	regtest.Register(t, r, regtest.Instance("h1:1"))
	for i := range 3 {
		if err := c.StopMember(i); err != nil {
			t.Fatal(err)
		}
		regtest.Register(t, r, regtest.Instance(fmt.Sprintf("h%d:1", i+2)))
		if err := c.StartMember(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, r, "h1:1 h2:1 h3:1 h4:1")
	if err := c.StopMember(3); err == nil {
		t.Error("there is a member 3")
	}
}

// Three processes, as in production; one is killed and comes back.
func TestClusterOfProcesses(t *testing.T) {
	t.Parallel()
	peers := map[string]string{"a": servers.Address(t), "b": servers.Address(t), "c": servers.Address(t)}
	var endpoints []string
	children := make(map[string]*child)
	for name := range peers {
		cfg := embedded.Config{Dir: filepath.Join(t.TempDir(), name), Listen: servers.Address(t), Name: name, Peers: peers}
		endpoints = append(endpoints, cfg.Listen)
		children[name] = startChild(t, cfg)
	}
	r := dial(t, endpoints)
	regtest.Register(t, r, regtest.Instance("h1:1"))
	children["b"].kill()
	regtest.Register(t, r, regtest.Instance("h2:1"))
	expect(t, r, "h1:1 h2:1")
	children["b"].start()
	own := dial(t, []string{children["b"].cfg.Listen}) // it has caught up
	expect(t, own, "h1:1 h2:1")
}

func TestStartClusterRefuses(t *testing.T) {
	t.Parallel()
	if _, err := embedded.StartCluster(t.Context(), embedded.Config{}); err == nil {
		t.Error("StartCluster without a directory")
	}
	if _, err := embedded.StartCluster(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:1"}); err == nil {
		t.Error("StartCluster with an address")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.StartCluster(t.Context(), embedded.Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "repair it, or delete") {
		t.Errorf("StartCluster with broken addresses = %v", err)
	}
}
