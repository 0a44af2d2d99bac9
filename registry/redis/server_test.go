package redis_test

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry/redis"
)

// shared is the Redis of most tests, each of which uses its own prefix. Tests run one after the
// other, so a test may kill it.
var shared *server

func TestMain(m *testing.M) {
	servers.Main(m, func(t testing.TB) {
		shared = newServer(t, "--appendonly", "yes")
		shared.start(t)
	})
}

// server is a redis-server process.
type server struct {
	servers.Process
	dir     string
	address string
	cli     []string // the arguments redis-cli needs to connect
	args    []string // additional arguments
	tls     bool
}

// newServer returns a server that runs until the end of the test.
func newServer(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{dir: t.TempDir(), address: servers.Address(t), args: args}
	t.Cleanup(s.Stop)
	return s
}

func (s *server) start(t testing.TB) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--bind", "127.0.0.1", "--port", port}
	if s.tls {
		args = []string{"--bind", "127.0.0.1", "--port", "0", "--tls-port", port}
	}
	// Every write that Redis has answered must survive a kill. With fsync Redis may write up to
	// two seconds later, while the disk is busy; without fsync it writes at once, and the
	// operating system, which survives, keeps the data.
	args = append(args, "--save", "", "--appendfsync", "no")
	cmd := exec.Command("redis-server", append(args, s.args...)...)
	cmd.Dir = s.dir
	s.Start(t, cmd, func() error {
		out, err := s.command("PING")
		if err == nil && !bytes.Contains(out, []byte("PONG")) {
			err = fmt.Errorf("it answers PING with %q", out)
		}
		return err
	})
}

// command runs redis-cli: the view of an operator.
func (s *server) command(args ...string) ([]byte, error) {
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("redis-cli", slices.Concat([]string{"-h", host, "-p", port}, s.cli, args)...).CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("redis-cli: %w: %s", err, out)
	}
	return bytes.TrimSpace(out), nil
}

// do runs redis-cli and returns what it prints.
func (s *server) do(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.command(args...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// dial returns a registry on the server that is closed at the end of the test.
func (s *server) dial(t *testing.T, opts ...redis.DialOption) *redis.Registry {
	t.Helper()
	r, err := redis.Dial([]string{s.address}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

var prefixes atomic.Int64

// freshPrefix returns a prefix that no other test uses.
func freshPrefix() string { return fmt.Sprintf("test-%d", prefixes.Add(1)) }
