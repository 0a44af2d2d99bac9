package command_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/consul"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/mdns"
	"github.com/anser-rpc/anser/registry/nacos"
	"github.com/anser-rpc/anser/registry/redis"
	"github.com/anser-rpc/anser/registry/zookeeper"
)

// startEtcd runs an etcd until the end of a test and returns its address.
func startEtcd(t testing.TB) string {
	t.Helper()
	m, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m.Endpoint()
}

// Every command that uses a registry works with each registry that has servers.
func TestRegistries(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte(canaryRules), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		scheme string
		start  func(testing.TB) string
		dial   func(address string) (registry.Registry, error)
		keeps  bool // supports rules
	}{
		{"etcd", startEtcd, func(a string) (registry.Registry, error) { return etcd.Dial([]string{a}) }, true},
		{"zookeeper", servers.ZooKeeper, func(a string) (registry.Registry, error) { return zookeeper.Dial([]string{a}) }, true},
		{"consul", func(t testing.TB) string { return servers.Consul(t) }, func(a string) (registry.Registry, error) { return consul.Dial(a) }, true},
		{"redis", func(t testing.TB) string { return servers.Redis(t) }, func(a string) (registry.Registry, error) { return redis.Dial([]string{a}) }, true},
		{"nacos", servers.Nacos, func(a string) (registry.Registry, error) { return nacos.Dial([]string{a}) }, false},
	} {
		t.Run(test.scheme, func(t *testing.T) {
			address := test.start(t)
			at := serve(t)
			r, err := test.dial(address)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := r.Register(t.Context(), registry.Instance{Service: "arith", ID: "arith-1", Address: at, Version: "2.0", Zone: "north"}); err != nil {
				t.Fatal(err)
			}
			url := test.scheme + "://" + address
			everyCommand(t, "arith", url, at)
			run(t, "ls", "--registry", url, "--timeout", "2m").expect(t, 0, "arith-1", at, "north", "2.0")
			run(t, "doctor", "arith", "--registry", url).expect(t, 0, "registry "+url, "lists ", "service arith", "1 instance answers")
			run(t, "ls", "nope", "--registry", url, "--timeout", "2m").expect(t, 1, `there is no service "nope": the registry has `)
			run(t, "__complete", "call", "--registry", url, "").expect(t, 0, "arith\n")
			if !test.keeps {
				run(t, "rules", "get", "arith", "--registry", url).expect(t, 2, "supports no rules: those of etcd, zookeeper, consul, redis, file do")
				return
			}
			run(t, "rules", "set", "arith", "-f", rules, "--registry", url, "--timeout", "2m").expect(t, 0, "at version 1")
			run(t, "rules", "get", "arith", "--registry", url, "--timeout", "2m").expect(t, 0, "percent: 100")
			run(t, "rules", "dry-run", "arith", "-f", rules, "--registry", url, "--timeout", "2m").expect(t, 0, "split[0] canary  arith-1")
			for _, named := range [][]string{{"arith", "--registry", url}, {url + "/arith"}} {
				run(t, append([]string{"explain", "--timeout", "2m", named[0], "Arith.Mul"}, named[1:]...)...).expect(t, 0, "rules     version 1", "pick      arith-1")
			}
		})
	}
}

// everyCommand runs the commands that make calls, with the name of the service and with its whole
// target.
func everyCommand(t *testing.T, service, url, at string) {
	t.Helper()
	full := strings.TrimRight(strings.ReplaceAll(url, "{service}", service), "/")
	if !strings.Contains(url, "{service}") {
		full = strings.Replace(url+"/"+service, ":////", ":///", 1)
	}
	for _, named := range [][]string{{service, "--registry", url}, {full}} {
		more := append([]string{"--timeout", "2m"}, named[1:]...)
		command := func(name string, args ...string) result {
			return run(t, append(append([]string{name, named[0]}, args...), more...)...)
		}
		command("describe").expect(t, 0, "Arith.Mul")
		command("call", "Arith.Add", `{"A": 1, "B": 2}`).expect(t, 0, `"C": 3`)
		command("explain", "Arith.Mul").expect(t, 0, at, "pick      ")
		command("bench", "Arith.Mul", "--data", `{"A": 7, "B": 8}`, "--seconds", "0.1", "--warmup", "0", "--callers", "2").expect(t, 0, "Arith.Mul at ", "CALLS/S")
	}
	run(t, "ls", service, "--registry", url, "--timeout", "2m").expect(t, 0, service, at, "up")
}

// The DNS has no list of services, only addresses without names of instances.
func TestDNS(t *testing.T) {
	at := serve(t)
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	server := serveDNS(t, at)
	url := "dns://" + server + "/{service}.shop.test:" + port
	everyCommand(t, "arith", url, at)
	everyCommand(t, "arith", "dns://"+server+"/_{service}._tcp.shop.test", at)
	run(t, "ls", "--registry", url).expect(t, 2, "cannot list services: name some")
	run(t, "ls", "other", "--registry", url, "--timeout", "2m").expect(t, 0, "other", "gone")
	run(t, "ls", "arith", "--registry", "dns://"+unused(t)+"/{service}.shop.test:1", "--timeout", "1s").expect(t, 1, "no registry answers at dns://")
	runLonger(t, []string{"call", "arith", "Arith.Add", "--registry", "dns://" + unused(t) + "/{service}.shop.test:1"}, 3, "the registry is in trouble: DNS server ")
	run(t, "rules", "get", "arith", "--registry", url).expect(t, 2, "supports no rules")
	run(t, "call", "dns://127.0.0.1", "Arith.Add").expect(t, 2, "use dns:///127.0.0.1")
}

// serveDNS answers for arith.shop.test, and returns its address.
func serveDNS(t *testing.T, at string) string {
	t.Helper()
	to, err := net.ResolveTCPAddr("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		pc.Close()
		<-done
	})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, from, err := pc.ReadFrom(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			var q dnsmessage.Message
			if err != nil || q.Unpack(buf[:n]) != nil || len(q.Questions) != 1 {
				continue
			}
			out, err := answerDNS(&q, to)
			if err != nil {
				t.Error(err)
			}
			pc.WriteTo(out, from)
		}
	}()
	return pc.LocalAddr().String()
}

func answerDNS(q *dnsmessage.Message, to *net.TCPAddr) ([]byte, error) {
	asked := q.Questions[0]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: q.ID, Response: true, Authoritative: true, RecursionDesired: q.RecursionDesired},
		Questions: q.Questions,
	}
	head := dnsmessage.ResourceHeader{Name: asked.Name, Class: dnsmessage.ClassINET, TTL: 60}
	switch name := asked.Name.String(); {
	case name == "arith.shop.test." && asked.Type == dnsmessage.TypeA:
		reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: [4]byte(to.IP.To4())}})
	case name == "_arith._tcp.shop.test." && asked.Type == dnsmessage.TypeSRV:
		body := &dnsmessage.SRVResource{Priority: 1, Weight: 1, Port: uint16(to.Port), Target: dnsmessage.MustNewName("arith.shop.test.")}
		reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: head, Body: body})
	case !strings.HasSuffix(name, "arith.shop.test."):
		reply.RCode = dnsmessage.RCodeNameError
	}
	return reply.Pack()
}

// All processes on this network receive the announcements of the test, including another run of
// it.
func TestMDNS(t *testing.T) {
	at := serve(t)
	r, err := mdns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	service := "arith-" + strings.ToLower(rand.Text())
	if err := r.Register(t.Context(), registry.Instance{Service: service, ID: "one", Address: at}); err != nil {
		t.Fatal(err)
	}
	everyCommand(t, service, "mdns:///", at)
	run(t, "ls", "--registry", "mdns://", "--timeout", "2m").expect(t, 0, service, at)
	run(t, "rules", "get", service, "--registry", "mdns:///").expect(t, 2, "supports no rules")
	run(t, "call", "mdns://host/arith", "Arith.Add").expect(t, 2, "use mdns:///service")
}

func TestUnknownRegistries(t *testing.T) {
	all := "etcd, zookeeper, consul, redis, nacos, dns, mdns, file"
	for _, args := range [][]string{{"ls"}, {"describe", "arith"}, {"call", "arith", "Arith.Mul"}, {"bench", "arith", "Arith.Mul"}, {"rules", "get", "arith"}, {"explain", "arith", "Arith.Mul"}} {
		run(t, append(args, "--registry", "gopher://h:1")...).expect(t, 2, `unknown scheme "gopher": use one of `+all)
		run(t, append(args, "--registry", "redis://me:secret@h:1")...).expect(t, 2, "has a user in it", "me:xxxxx@h:1")
	}
	for _, name := range []string{"describe", "call", "bench", "explain"} {
		run(t, name, "gopher://h:1/arith", "Arith.Mul").expect(t, 2, `unknown scheme "gopher": use tcp, tls, unix, http, https, ws, wss, quic, `+all)
		run(t, name, "kubernetes:///arith", "Arith.Mul").expect(t, 2, "kubectl port-forward")
	}
	for url, say := range map[string]string{
		"redis://":                  "names no server: use for example redis://127.0.0.1:6379",
		"nacos:///x":                "names no server: use for example nacos://127.0.0.1:8848",
		"redis://h":                 "is not host:port",
		"nacos://h:1/a/b":           "use nacos://host:8848/namespace/service",
		"etcd://h:1?x=y":            "query or fragment",
		"localhost:2379":            "is not a URL",
		"mdns://somewhere":          "use mdns:///service",
		"file://host/services.json": "want file:///path/registry.json/service",
	} {
		run(t, "ls", "--registry", url).expect(t, 2, say)
	}
	for _, scheme := range []string{"zookeeper", "consul", "redis", "nacos"} {
		none := fmt.Sprintf("%s://%s", scheme, unused(t))
		run(t, "ls", "--registry", none).expect(t, 1, "no registry answers at "+none+": check that it runs")
		run(t, "call", none+"/arith", "Arith.Mul").expect(t, 1, "no registry answers at "+none)
	}
}
