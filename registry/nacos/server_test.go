package nacos_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry/nacos"
)

// shared is the Nacos of all tests, each of which uses its own namespace.
var shared *server

func TestMain(m *testing.M) {
	servers.Main(m, func(t testing.TB) {
		shared = &server{dir: t.TempDir(), address: servers.Address(t)}
		t.Cleanup(shared.Stop)
		shared.start(t)
	})
}

// server is a Nacos process.
type server struct {
	servers.Process
	dir     string
	address string
}

func (s *server) start(t testing.TB) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"--add-opens", "java.base/java.lang=ALL-UNNAMED", // Spring of 2018 needs access to the class loader
		"-Duser.home="+s.dir, "-Dnacos.home="+s.dir, "-Dnacos.standalone=true", "-Dnacos.server.ip=127.0.0.1",
		"-Dserver.port="+port, "-Dserver.address=127.0.0.1",
		"-cp", filepath.Join(servers.Find(t, "nacos-naming-0.8.0"), "*"), "com.alibaba.nacos.naming.NamingApp")
	cmd.Dir = s.dir
	s.Start(t, cmd, func() error {
		_, err := s.call(http.MethodPost, "/instance?serviceName=ready&ip=127.0.0.1&port=1")
		return err
	})
}

// call makes a request, as an operator would with curl.
func (s *server) call(method, path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.address+"/nacos/v1/ns"+path, nil)
	if err != nil {
		return "", err
	}
	req.Close = true
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

// proxy is a path to the server that can be cut: for a client, that is the same as a crash of the
// server, but Nacos need not start again, which takes ten seconds.
type proxy struct {
	address string
	to      string

	mu       sync.Mutex // guards the fields below
	listener net.Listener
	conns    map[net.Conn]bool
	running  sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	p := &proxy{address: servers.Address(t), to: to, conns: make(map[net.Conn]bool)}
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

// dial returns a registry on the server that is closed at the end of the test.
func dial(t *testing.T, address string, opts ...nacos.Option) *nacos.Registry {
	t.Helper()
	r, err := nacos.Dial([]string{address}, append([]nacos.Option{nacos.PollEvery(testPoll)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
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
