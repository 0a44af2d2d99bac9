package redis_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/registry/redis"
)

// shared is the Redis that most tests use, each under a prefix of its own. Tests run one after the other, so
// that one may kill it.
var shared *server

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) (code int) {
	if flag.Parse(); flag.Lookup("test.fuzz").Value.String() != "" {
		return m.Run() // fuzz targets need no server, and each of their workers would start one
	}
	dir, err := os.MkdirTemp("", "anser-redis-")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(dir)
	shared = &server{dir: dir, args: []string{"--appendonly", "yes"}}
	if err := shared.startAnywhere(); err != nil {
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

// server is a redis-server in a process of its own.
type server struct {
	dir     string
	address string
	cli     []string // what redis-cli needs to get in
	args    []string // more arguments
	tls     bool
	process *exec.Cmd
}

// ownServer starts a Redis for one test.
func ownServer(t *testing.T, s *server) *server {
	t.Helper()
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	t.Cleanup(s.stop)
	if err := s.startAnywhere(); err != nil {
		t.Fatal(err)
	}
	return s
}

// startAnywhere starts the server for the first time, at an address that is free: another process may be
// faster than it is to take it.
func (s *server) startAnywhere() (err error) {
	for range 3 {
		s.address = freeAddress()
		if err = s.start(); err == nil {
			return nil
		}
		s.stop()
	}
	return err
}

func (s *server) start() error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("%w: run scripts/servers, which gets the servers that tests need", err)
	}
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return err
	}
	args := []string{"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--save", "", "--logfile", filepath.Join(s.dir, "log")}
	if s.tls {
		args[2], args[3] = "--tls-port", port
		args = append(args, "--port", "0")
	}
	s.process = exec.Command(path, append(args, s.args...)...)
	if err := s.process.Start(); err != nil {
		return err
	}
	var reason error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var out []byte
		if out, reason = s.command("PING"); reason == nil && bytes.Contains(out, []byte("PONG")) {
			return nil
		}
	}
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return errors.Join(errors.New("redis does not answer"), reason, errors.New(string(text)))
}

// stop kills the process, as a crash would.
func (s *server) stop() {
	if s.process != nil {
		s.process.Process.Kill()
		s.process.Wait()
		s.process = nil
	}
}

// command runs redis-cli, which is how an operator sees Redis.
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

// dial opens a registry on the server for the length of the test.
func (s *server) dial(t *testing.T, opts ...redis.DialOption) *redis.Registry {
	t.Helper()
	r, err := redis.Dial([]string{s.address}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func restart(t *testing.T, s *server) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

var prefixes atomic.Int64

// freshPrefix returns a prefix that no other test uses.
func freshPrefix() string { return fmt.Sprintf("test-%d", prefixes.Add(1)) }

var taken sync.Map // the addresses that freeAddress has returned

// freeAddress returns an address below the range that the kernel hands out for other connections, so that a
// server which is started again finds its port free.
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

// within returns a context for one call.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
