package doctor_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/anser-rpc/anser/cmd/anser/internal/doctor"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/internal/authority"
)

func at(url string) *doctor.Config {
	return &doctor.Config{Source: target.Source{URL: url}, Timeout: time.Minute}
}

// hastilyAt returns all findings about a system whose registry never answers some questions.
func hastilyAt(t *testing.T, url string, parts ...string) *doctor.Group {
	t.Helper()
	g, _ := hastily(func(c *doctor.Config) *doctor.Group {
		c.Source.URL = url
		reg, service := system(t, c, "arith")
		reg.Findings = append(reg.Findings, service.Findings...)
		return reg
	}, parts...)
	return g
}

func TestRegistryThatDoesNotRun(t *testing.T) {
	for _, scheme := range []string{"etcd", "zookeeper", "consul", "redis", "nacos"} {
		none := unused(t)
		reg, _ := system(t, at(scheme+"://"+none), "arith") // it does not wait for the registry
		expect(t, reg, "tcp", doctor.Fail, none+" refuses connections")
		if len(reg.Findings) != 1 {
			t.Errorf("%s: %s", scheme, text(reg))
		}
	}
	for _, url := range []string{"gopher://h:1", "etcd://", "h:1", "etcd://user:secret@h:1"} {
		_, err := at(url).System(t.Context(), nil, func(*doctor.Group) {})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// web answers each path with a text.
func web(t *testing.T, answers map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestRegistryThatIsNotHealthy(t *testing.T) {
	ill := web(t, map[string]string{"/health": `{"health":"false","reason":"ALARM NOSPACE\u001b[2J"}`})
	reg, _ := system(t, at("etcd://"+ill+","+unused(t)+","+unused(t)))
	expect(t, reg, "registry", doctor.Fail, "the server is not healthy: ALARM NOSPACE", "etcdctl")
	expect(t, reg, "registry.quorum", doctor.Fail, "0 of 3 servers of the registry work")
	expect(t, reg, "clock", doctor.Pass, "the clock of the registry agrees")
	if strings.Contains(text(reg), "\x1b") {
		t.Error("a terminal gets what the server sends")
	}

	reg, _ = system(t, at("consul://"+web(t, map[string]string{"/v1/status/leader": `""`})))
	expect(t, reg, "registry", doctor.Fail, "the cluster has no leader")

	zookeeper := plainServer(t, func(nc net.Conn) {
		io.ReadFull(nc, make([]byte, len("srvr")))
		io.WriteString(nc, "This ZooKeeper instance is not currently serving requests\n")
	})
	reg, _ = system(t, at("zookeeper://"+zookeeper))
	expect(t, reg, "registry", doctor.Fail, "belongs to no majority")

	reg, _ = system(t, at("etcd://"+plainServer(t, func(net.Conn) {})))
	expect(t, reg, "registry", doctor.Fail, "the server does not say its health", "--registry-tls")
}

func TestRegistryThatAnswers(t *testing.T) {
	consul := func(services string, after time.Duration) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/v1/status/leader":
				io.WriteString(w, `"10.0.0.1:8300"`)
			case "/v1/catalog/services":
				time.Sleep(after)
				io.WriteString(w, services)
			default:
				io.WriteString(w, "[]")
			}
		}))
		t.Cleanup(s.Close)
		return "consul://" + s.Listener.Addr().String()
	}
	reg, _ := system(t, at(consul("{}", 0)))
	expect(t, reg, "registry", doctor.Pass, "the agent answers")
	expect(t, reg, "registry", doctor.Warn, "no service is registered", "anser.Announce")
	reg, _ = system(t, at(consul("{}", 600*time.Millisecond)))
	expect(t, reg, "registry.latency", doctor.Warn, "a list of 0 services took", "the disks of the registry")

	zookeeper := plainServer(t, func(nc net.Conn) {
		io.ReadFull(nc, make([]byte, len("srvr")))
		io.WriteString(nc, "Zookeeper version: 3.9\nMode: follower\n")
	})
	reg = hastilyAt(t, "zookeeper://"+zookeeper, "the server serves as follower")
	expect(t, reg, "registry", doctor.Pass, "the server serves as follower")
	reg = hastilyAt(t, "etcd://"+web(t, map[string]string{"/health": "well"}), "does not say its health (status 200)")
	expect(t, reg, "registry", doctor.Note, "does not say its health (status 200)")
	reg, _ = system(t, at("consul://"+plainServer(t, func(net.Conn) {})))
	expect(t, reg, "registry", doctor.Fail, "the agent does not answer")
}

func TestCertificateOfARegistry(t *testing.T) {
	a := authority.New("the authority")
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.Issue(valid(-10*time.Hour, -time.Hour))}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	c := at("etcd://" + s.Listener.Addr().String())
	c.Source.Access.TLS = &tls.Config{RootCAs: a.Pool}
	reg, _ := system(t, c)
	expect(t, reg, "tls.expiry", doctor.Fail, "has expired", "60 minutes ago")
}

// serveDNS answers questions for addresses of the names, and for no others, if reply is set.
func serveDNS(t *testing.T, names map[string][][4]byte, reply bool) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for buf := make([]byte, 1500); ; {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			var q dnsmessage.Message
			if q.Unpack(buf[:n]) != nil || len(q.Questions) != 1 || !reply {
				continue
			}
			asked := q.Questions[0]
			m := dnsmessage.Message{Header: dnsmessage.Header{ID: q.ID, Response: true, Authoritative: true, RecursionDesired: q.RecursionDesired}, Questions: q.Questions}
			list, known := names[strings.TrimSuffix(asked.Name.String(), ".")]
			if !known {
				m.RCode = dnsmessage.RCodeNameError
			}
			for _, a := range list {
				if asked.Type == dnsmessage.TypeA {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: asked.Name, Class: dnsmessage.ClassINET, TTL: 60}, Body: &dnsmessage.AResource{A: a},
					})
				}
			}
			out, err := m.Pack()
			if err != nil {
				t.Error(err)
			}
			pc.WriteTo(out, from)
		}
	}()
	// A resolver that was given up waits for its packet until a timeout of its own, unless the
	// connection is closed.
	var mu sync.Mutex // guards conns and over
	var conns []net.Conn
	over := false
	t.Cleanup(func() {
		pc.Close()
		<-done
		mu.Lock()
		defer mu.Unlock()
		over = true
		for _, nc := range conns {
			nc.Close()
		}
	})
	dialer := new(net.Dialer)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return nil, net.ErrClosed
		}
		nc, err := dialer.DialContext(ctx, "udp", pc.LocalAddr().String())
		if err == nil {
			conns = append(conns, nc)
		}
		return nc, err
	}}
}

func TestDNS(t *testing.T) {
	_, port, err := net.SplitHostPort(serve(t))
	if err != nil {
		t.Fatal(err)
	}
	// No server listens at the second address of two.test.
	names := map[string][][4]byte{"one.test": {{127, 0, 0, 1}}, "two.test": {{127, 0, 0, 1}, {127, 0, 0, 99}}}
	c := &doctor.Config{Timeout: time.Minute, Resolver: serveDNS(t, names, true)}
	p := examine(t, c, "two.test.:"+port)
	expect(t, p, "dns", doctor.Pass, "is 127.0.0.1, 127.0.0.99")
	expect(t, p, "tcp", doctor.Pass, "connects to 127.0.0.1:"+port)
	expect(t, p, "tcp", doctor.Warn, "127.0.0.99:"+port+" refuses connections", "take it out of the DNS")
	p = examine(t, c, "three.test.:"+port)
	expect(t, p, "dns", doctor.Fail, "the name three.test. does not exist")
	if steps := p.Timings[0].Steps; len(steps) != 1 || steps[0].Name != "DNS" || steps[0].Error == "" {
		t.Errorf("%+v", steps)
	}
}

func TestDNSThatCannotBeAsked(t *testing.T) {
	none := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no route to host")
	}}
	c := &doctor.Config{Timeout: time.Minute, Resolver: none}
	expect(t, examine(t, c, "one.test.:1"), "dns", doctor.Fail, "the lookup of one.test. failed", "the DNS servers of this machine")
}

func TestDNSThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	c := &doctor.Config{Timeout: 3 * time.Second, Resolver: serveDNS(t, nil, false)}
	expect(t, examine(t, c, "one.test.:1"), "dns", doctor.Fail, "the DNS server has not answered within 3s", "resolv.conf")
}
