package consul_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/consul"
)

// shared is the agent that most tests use, each with a prefix of its own. Tests run one after the other, so
// that one may kill it.
var shared *server

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) (code int) {
	// Consul makes sure of every write: in memory that takes no time.
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "anser-consul-")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(dir)
	shared = &server{dir: dir}
	defer shared.stop()
	if code := m.Run(); code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

// agent returns the shared agent, which the first test starts.
func agent(t *testing.T) *server {
	t.Helper()
	if shared.process == nil {
		shared.startAnywhere(t)
	}
	return shared
}

// ownServer starts a Consul for one test, which may change it for all who use it.
func ownServer(t *testing.T, config string) *server {
	t.Helper()
	s := &server{dir: t.TempDir(), config: config}
	t.Cleanup(s.stop)
	s.startAnywhere(t)
	return s
}

// server is a Consul that is agent and server, in a process of its own.
type server struct {
	dir      string
	endpoint string
	ports    string // in the terms of its configuration
	config   string // more of it
	process  *exec.Cmd
	token    string
	roots    *x509.CertPool
	scheme   string
}

// startAnywhere starts it for the first time, at addresses that are free: another process may be faster than
// it is to take one.
func (s *server) startAnywhere(t *testing.T) {
	t.Helper()
	var err error
	for range 3 {
		ports := freePorts(5)
		s.endpoint = fmt.Sprintf("127.0.0.1:%d", ports[0])
		s.ports = fmt.Sprintf("ports { http = %d, server = %d, serf_lan = %d, serf_wan = %d, dns = %d, grpc = -1, grpc_tls = -1 }",
			ports[0], ports[1], ports[2], ports[3], ports[4])
		if s.scheme == "https" {
			s.ports = strings.Replace(strings.Replace(s.ports, "http =", "https =", 1), "{", "{ http = -1,", 1)
		}
		if err = s.start(servers.Find(t, "consul-1.15.0/consul")); err == nil {
			return
		}
		s.stop()
	}
	t.Fatal(err)
}

func (s *server) start(program string) error {
	config := filepath.Join(s.dir, "agent.hcl")
	text := s.ports + `
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
		return err
	}
	s.process = exec.Command(program, "agent", "-config-file", config)
	logs, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logs.Close()
	s.process.Stdout, s.process.Stderr = logs, logs
	if err := s.process.Start(); err != nil {
		return err
	}
	c, done := s.client()
	defer done()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		// A read that asks the other servers too: there are none, but it waits for this one to lead.
		_, _, err = c.KV().Get("ready", &api.QueryOptions{RequireConsistent: true})
		if err == nil {
			return nil
		}
	}
	out, _ := os.ReadFile(logs.Name())
	return fmt.Errorf("consul does not serve: %w\n%s", err, out)
}

// stop kills the process, as a crash would.
func (s *server) stop() {
	if s.process != nil {
		s.process.Process.Kill()
		s.process.Wait()
		s.process = nil
	}
}

func (s *server) restart(t *testing.T) {
	t.Helper()
	if err := s.start(servers.Find(t, "consul-1.15.0/consul")); err != nil {
		t.Fatal(err)
	}
}

// use gives the test a client of Consul's own.
func (s *server) use(t *testing.T) *api.Client {
	t.Helper()
	c, done := s.client()
	t.Cleanup(done)
	return c
}

// dial opens a registry on the agent for the length of the test.
func (s *server) dial(t *testing.T, opts ...consul.Option) *consul.Registry {
	t.Helper()
	r, err := consul.Dial(s.endpoint, append([]consul.Option{consul.TTL(testTTL)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// forgetLeases takes all services from the agent, as one that has lost its data does.
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

// freePorts returns ports below the range that the kernel hands out for other connections, so that a server
// which is started again finds its ports free.
func freePorts(n int) (ports []int) {
	for len(ports) < n {
		port := 20_000 + rand.IntN(6_000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			defer l.Close() // not the same one twice
			ports = append(ports, port)
		}
	}
	return ports
}

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
	return brief(list)
}

func brief(list []registry.Instance) string {
	var texts []string
	for _, in := range list {
		texts = append(texts, in.Address)
	}
	return strings.Join(texts, " ")
}

// watched is what a watcher of the service arith was told, in order.
type watched struct {
	updates  chan string // addresses
	troubles chan error
}

func watchAddresses(t *testing.T, r registry.Resolver) *watched {
	w := &watched{make(chan string, 1000), make(chan error, 1000)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Watch(ctx, "arith", func(list []registry.Instance) { w.updates <- brief(list) }, func(err error) { w.troubles <- err })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

// await waits for an update with these addresses, past others.
func (w *watched) await(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case got := <-w.updates:
			if got == want {
				return
			}
		case <-deadline:
			t.Fatalf("no update with %q", want)
		}
	}
}

func (w *watched) awaitTrouble(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.troubles:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("no trouble")
		return nil
	}
}

// expect makes sure that the next update is this one.
func (w *watched) expect(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-w.updates:
		if got != want {
			t.Fatalf("update with %q, want %q", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("no update, want %q", want)
	}
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

func (l *lockedBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (s *server) client() (c *api.Client, done func()) {
	transport := &http.Transport{}
	cfg := &api.Config{Address: s.endpoint, Scheme: "http", Token: s.token, HttpClient: &http.Client{Transport: transport}}
	if s.scheme == "https" {
		cfg.Scheme = "https"
		transport.TLSClientConfig = &tls.Config{RootCAs: s.roots}
	}
	c, err := api.NewClient(cfg)
	if err != nil {
		panic(err) // the configuration is the test's own
	}
	return c, transport.CloseIdleConnections
}
