package consul_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry/consul"
)

// shared is the agent of most tests, each of which uses its own prefix. Tests run one after the
// other, so a test may kill it.
var shared *server

func TestMain(m *testing.M) {
	servers.Main(m, func(t testing.TB) {
		// Consul syncs every write: on a memory file system that takes no time.
		dir, err := os.MkdirTemp("/dev/shm", "anser-consul-")
		if err != nil {
			dir = t.TempDir()
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		shared = newServer(t, dir)
		shared.start(t)
	})
}

// server is a Consul process that is agent and server.
type server struct {
	servers.Process
	dir    string
	port   int    // of its API, the first of five ports
	config string // additional configuration
	token  string
	roots  *x509.CertPool // nil: no TLS
}

// newServer returns a server that runs until the end of the test.
func newServer(t testing.TB, dir string) *server {
	t.Helper()
	s := &server{dir: dir, port: servers.Ports(t, 5)}
	t.Cleanup(s.Stop)
	return s
}

func (s *server) endpoint() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

func (s *server) start(t testing.TB) {
	t.Helper()
	config := filepath.Join(s.dir, "agent.hcl")
	web := "http"
	if s.roots != nil {
		web = "http = -1, https"
	}
	text := fmt.Sprintf("ports { %s = %d, server = %d, serf_lan = %d, serf_wan = %d, dns = %d, grpc = -1, grpc_tls = -1 }",
		web, s.port, s.port+1, s.port+2, s.port+3, s.port+4) + `
server = true
bootstrap = true
bind_addr = "127.0.0.1"
client_addr = "127.0.0.1"
log_level = "warn"
disable_update_check = true
performance { raft_multiplier = 1 }
data_dir = "` + filepath.ToSlash(filepath.Join(s.dir, "data")) + `"
` + s.config
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(servers.Find(t, "consul-1.15.0/consul"), "agent", "-config-file", config)
	cmd.Dir = s.dir
	c, done := s.client()
	defer done()
	s.Start(t, cmd, func() error {
		// A consistent read also involves the other servers: there are none, but it waits for this
		// one to become the leader.
		_, _, err := c.KV().Get("ready", &api.QueryOptions{RequireConsistent: true})
		return err
	})
}

// use returns a client of Consul's own library for the test.
func (s *server) use(t *testing.T) *api.Client {
	t.Helper()
	c, done := s.client()
	t.Cleanup(done)
	return c
}

// dial returns a registry on the agent that is closed at the end of the test.
func (s *server) dial(t *testing.T, opts ...consul.Option) *consul.Registry {
	t.Helper()
	r, err := consul.Dial(s.endpoint(), append([]consul.Option{consul.TTL(testTTL)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// forgetLeases removes all services from the agent, as if it had lost its data.
func (s *server) forgetLeases(t *testing.T) {
	t.Helper()
	c := s.use(t)
	services, err := c.Agent().Services()
	if err != nil {
		t.Fatal(err)
	}
	for id := range services {
		if err := c.Agent().ServiceDeregister(id); err != nil {
			t.Fatal(err)
		}
	}
}

var prefixes atomic.Int64

// freshPrefix returns a prefix that no other test uses.
func freshPrefix() string { return fmt.Sprintf("test%d-", prefixes.Add(1)) }

func (s *server) client() (c *api.Client, done func()) {
	transport := &http.Transport{}
	cfg := &api.Config{Address: s.endpoint(), Scheme: "http", Token: s.token, HttpClient: &http.Client{Transport: transport}}
	if s.roots != nil {
		cfg.Scheme = "https"
		transport.TLSClientConfig = &tls.Config{RootCAs: s.roots}
	}
	c, err := api.NewClient(cfg)
	if err != nil {
		panic(err) // the configuration comes from the test itself
	}
	return c, transport.CloseIdleConnections
}
