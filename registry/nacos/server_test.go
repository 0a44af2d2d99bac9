package nacos_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
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

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/registry/nacos"
)

// shared is the Nacos that all tests use, each in a namespace of its own.
var shared *server

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) (code int) {
	if flag.Parse(); flag.Lookup("test.fuzz").Value.String() != "" {
		return m.Run() // fuzz targets need no server, and each of their workers would start one
	}
	dir, err := os.MkdirTemp("", "anser-nacos-")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(dir)
	shared = &server{dir: dir, address: freeAddress()}
	defer shared.stop()
	if err := shared.start(); err != nil {
		log.Print(err)
		return 1
	}
	if code := m.Run(); code != 0 {
		return code
	}
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

// server is a Nacos in a process of its own.
type server struct {
	dir     string
	address string
	process *exec.Cmd
}

func (s *server) start() error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	jars := filepath.Join(cache, "anser", "nacos-naming-0.8.0")
	if _, err := os.Stat(jars); err != nil {
		return fmt.Errorf("%w: run scripts/servers, which gets the servers that tests need", err)
	}
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return err
	}
	s.process = exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"--add-opens", "java.base/java.lang=ALL-UNNAMED", // Spring of 2018 wants into the class loader
		"-Duser.home="+s.dir, "-Dnacos.home="+s.dir, "-Dnacos.standalone=true", "-Dnacos.server.ip=127.0.0.1",
		"-Dserver.port="+port, "-Dserver.address=127.0.0.1", "-cp", filepath.Join(jars, "*"), "com.alibaba.nacos.naming.NamingApp")
	s.process.Dir = s.dir
	logs, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logs.Close()
	s.process.Stdout, s.process.Stderr = logs, logs
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("%w: run scripts/servers, which gets the servers that tests need", err)
	}
	var reason error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if _, reason = s.call(http.MethodPost, "/instance?serviceName=ready&ip=127.0.0.1&port=1"); reason == nil {
			return nil
		}
	}
	text, _ := os.ReadFile(logs.Name())
	return fmt.Errorf("nacos does not answer: %w\n%s", reason, text)
}

// stop kills the process, as a crash would.
func (s *server) stop() {
	if s.process != nil {
		s.process.Process.Kill()
		s.process.Wait()
		s.process = nil
	}
}

// call makes a request as an operator would with curl.
func (s *server) call(method, path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.address+"/nacos/v1/ns"+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, body)
	}
	return string(body), err
}

func (s *server) do(t *testing.T, method, path string) string {
	t.Helper()
	body, err := s.call(method, path)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// proxy is a way to the server that can be cut: what a client sees is what it sees when the server dies, but
// Nacos need not start again, which takes it ten seconds.
type proxy struct {
	address string
	to      string

	mu       sync.Mutex // guards what follows
	listener net.Listener
	conns    map[net.Conn]bool
	running  sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	p := &proxy{address: freeAddress(), to: to, conns: make(map[net.Conn]bool)}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p
}

func (p *proxy) start() error {
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.listener = l
	p.mu.Unlock()
	p.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.forward(conn) })
		}
	})
	return nil
}

func (p *proxy) forward(conn net.Conn) {
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		conn.Close()
		return
	}
	p.mu.Lock()
	p.conns[conn], p.conns[out] = true, true
	closed := p.listener == nil
	p.mu.Unlock()
	if closed {
		conn.Close()
		out.Close()
	}
	var both sync.WaitGroup
	both.Go(func() { io.Copy(out, conn); out.Close(); conn.Close() })
	both.Go(func() { io.Copy(conn, out); out.Close(); conn.Close() })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
	delete(p.conns, out)
}

func (p *proxy) stop() {
	p.mu.Lock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for conn := range p.conns {
		conn.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

var namespaces atomic.Int64

// freshNamespace returns a namespace that no other test uses.
func freshNamespace() string { return fmt.Sprintf("test-%d", namespaces.Add(1)) }

// dial opens a registry on the server for the length of the test.
func dial(t *testing.T, address string, opts ...nacos.Option) *nacos.Registry {
	t.Helper()
	r, err := nacos.Dial([]string{address}, append([]nacos.Option{nacos.PollEvery(testPoll)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

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

// forget deletes all instances of the namespace.
func forget(t *testing.T, namespace string) {
	t.Helper()
	for service, hosts := range everything(t, namespace) {
		for _, h := range hosts {
			shared.do(t, http.MethodDelete, fmt.Sprintf("/instance?serviceName=%s&namespaceId=%s&ip=%s&port=%d&cluster=%s", service, namespace, h.IP, h.Port, h.Cluster))
		}
	}
}

// query returns the path of the list of the service.
func query(service, namespace string) string {
	return "/instance/list?serviceName=" + service + "&namespaceId=" + namespace
}

func isMissing(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "not found") || strings.Contains(err.Error(), "No service exist"))
}
