package etcd_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/anser-rpc/anser/registry/etcd"
)

// shared is the etcd that most tests use, each under a prefix of its own. Tests run one after the
// other, so that one may kill it.
var shared *server

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) (code int) {
	if flag.Parse(); flag.Lookup("test.fuzz").Value.String() != "" {
		return m.Run() // fuzz targets need no server, and each of their workers would start one
	}
	dir, err := os.MkdirTemp("", "anser-etcd-")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(dir)
	if shared, err = startServer(dir); err != nil {
		log.Print(err)
		return 1
	}
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

// buildServer builds etcd, or finds what an earlier run has built: linking takes seconds, and
// compiling minutes.
func buildServer() (string, error) {
	const source = "testdata/server"
	sum := sha256.New()
	for _, name := range []string{"main.go", "go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		sum.Write(data)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	path := filepath.Join(cache, "anser", fmt.Sprintf("etcd-%.6x", sum.Sum(nil)))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	log.Printf("building etcd for the tests, once: %s", path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	build := exec.Command("go", "build", "-trimpath", "-o", temp, ".")
	build.Dir = source
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build etcd: %w\n%s", err, out)
	}
	return path, os.Rename(temp, path)
}

// server is an etcd in a process of its own.
type server struct {
	dir      string
	endpoint string // host:port
	peer     string
	tls      *tls.Config // of clients; nil: no TLS
	args     []string    // more arguments
	process  *exec.Cmd
}

// startServer starts an etcd that keeps its data in dir.
func startServer(dir string) (*server, error) {
	s := &server{dir: dir}
	return s, s.startAnywhere()
}

// startAnywhere starts the server for the first time, at addresses that are free: another process
// may be faster than it is to take one.
func (s *server) startAnywhere() (err error) {
	for range 3 {
		s.endpoint, s.peer = freeAddress(), freeAddress()
		if err = s.start(); err == nil {
			return nil
		}
		s.stop()
	}
	return err
}

// ownServer starts an etcd for one test, which may change it for all who use it.
func ownServer(t *testing.T) *server {
	t.Helper()
	s, err := startServer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *server) url() string {
	if s.tls != nil {
		return "https://" + s.endpoint
	}
	return "http://" + s.endpoint
}

func (s *server) start() error {
	path, err := buildServer()
	if err != nil {
		return err
	}
	s.process = exec.Command(path, "--data-dir", filepath.Join(s.dir, "data"), "--log-level", "error",
		"--listen-client-urls", s.url(), "--advertise-client-urls", s.url(),
		"--listen-peer-urls", "http://"+s.peer, "--initial-advertise-peer-urls", "http://"+s.peer,
		"--initial-cluster", "default=http://"+s.peer,
		"--heartbeat-interval", "50", "--election-timeout", "500", "--unsafe-no-fsync")
	s.process.Args = append(s.process.Args, s.args...)
	logs, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logs.Close()
	s.process.Stdout, s.process.Stderr = logs, logs
	if err := s.process.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	c, err := s.client()
	if err != nil {
		return err
	}
	defer c.Close()
	// With users the answer may be that the question needs a name.
	if _, err := c.Get(ctx, "ready"); err != nil && !errors.Is(err, rpctypes.ErrUserEmpty) {
		text, _ := os.ReadFile(logs.Name())
		return fmt.Errorf("etcd does not answer: %w\n%s", err, text)
	}
	return nil
}

// stop kills the process, as a crash would.
func (s *server) stop() {
	if s.process != nil {
		s.process.Process.Kill()
		s.process.Wait()
		s.process = nil
	}
}

// client returns a client of etcd's own.
func (s *server) client() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{s.url()}, TLS: s.tls, Logger: zap.NewNop()})
}

// use gives the test a client of etcd's own on the server.
func (s *server) use(t *testing.T) *clientv3.Client {
	t.Helper()
	c, err := s.client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// dial opens a registry on the server for the length of the test.
func (s *server) dial(t *testing.T, opts ...etcd.DialOption) *etcd.Registry {
	t.Helper()
	r, err := etcd.Dial([]string{s.url()}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

var prefixes atomic.Int64

// freshPrefix returns a prefix that no other test uses.
func freshPrefix() string { return fmt.Sprintf("/test/%d", prefixes.Add(1)) }

var taken sync.Map // the addresses that freeAddress has returned

// freeAddress returns an address below the range that the kernel hands out for other connections,
// so that a server which is started again finds its port free.
func freeAddress() string {
	for {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(6_000))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		l.Close()
		if _, twice := taken.LoadOrStore(address, true); !twice {
			return address
		}
	}
}

// forgetLeases revokes all leases of the server.
func forgetLeases(t *testing.T, s *server) {
	t.Helper()
	c := s.use(t)
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
