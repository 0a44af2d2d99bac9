package etcd_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry/etcd"
)

// shared is the etcd of most tests, each of which uses its own prefix. Tests run one after the
// other, so a test may kill it.
var shared *server

func TestMain(m *testing.M) {
	servers.Main(m, func(t testing.TB) {
		shared = newServer(t)
		shared.start(t)
	})
}

// buildServer builds etcd, or finds the binary of an earlier run: linking takes seconds, and
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

// server is an etcd process.
type server struct {
	servers.Process
	dir      string
	endpoint string // host:port
	peer     string
	tls      *tls.Config // of clients; nil: no TLS
	args     []string    // additional arguments
}

// newServer returns a server that runs until the end of the test.
func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{dir: t.TempDir(), endpoint: servers.Address(t), peer: servers.Address(t)}
	t.Cleanup(s.Stop)
	return s
}

func (s *server) url() string {
	if s.tls != nil {
		return "https://" + s.endpoint
	}
	return "http://" + s.endpoint
}

func (s *server) start(t testing.TB) {
	t.Helper()
	path, err := buildServer()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--data-dir", filepath.Join(s.dir, "data"), "--log-level", "error",
		"--listen-client-urls", s.url(), "--advertise-client-urls", s.url(),
		"--listen-peer-urls", "http://"+s.peer, "--initial-advertise-peer-urls", "http://"+s.peer,
		"--initial-cluster", "default=http://"+s.peer,
		"--heartbeat-interval", "50", "--election-timeout", "500", "--unsafe-no-fsync")
	cmd.Args = append(cmd.Args, s.args...)
	cmd.Dir = s.dir
	c, err := s.client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.Start(t, cmd, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Get(ctx, "ready")
		if errors.Is(err, rpctypes.ErrUserEmpty) {
			return nil // with users, the error may be that the request needs a name
		}
		return err
	})
}

// client returns a client of etcd's own library.
func (s *server) client() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{s.url()}, TLS: s.tls, Logger: zap.NewNop()})
}

// use returns a client of etcd's own library for the test.
func (s *server) use(t *testing.T) *clientv3.Client {
	t.Helper()
	c, err := s.client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// dial returns a registry on the server that is closed at the end of the test.
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
