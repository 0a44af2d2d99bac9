package dns_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/dns"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/registrytest"
)

func TestConformance(t *testing.T) {
	lacks := []registrytest.Capability{
		registrytest.Announcing, registrytest.Listing, registrytest.Outages, registrytest.Leases, registrytest.Documents,
	}
	t.Run("addresses", func(t *testing.T) {
		registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
			s := startServer(t, "arith.test. 1 A 10.0.0.2", "arith.test. 1 A 10.0.0.1", "arith.test. 1 AAAA 2001:db8::1", "echo.test. 1 A 10.0.0.1")
			return registrytest.Fixture{
				Resolver: newResolver(t, s, "{service}.test.:8972"), ServerInside: true,
				Instances: []registry.Instance{
					{Service: "arith", Address: "10.0.0.1:8972"},
					{Service: "arith", Address: "10.0.0.2:8972"},
					{Service: "arith", Address: "[2001:db8::1]:8972"},
					{Service: "echo", Address: "10.0.0.1:8972"},
				},
			}
		}, lacks...)
	})
	t.Run("SRV", func(t *testing.T) {
		registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
			s := startServer(t, "_arith._tcp.test. 1 SRV 10 60 8972 a.test.", "a.test. 1 A 10.0.0.1")
			return registrytest.Fixture{
				Resolver: newResolver(t, s, "_{service}._tcp.test."), ServerInside: true,
				Instances: []registry.Instance{{
					Service: "arith", Address: "10.0.0.1:8972", Weight: 60,
					Tags: map[string]string{"host": "a.test", "priority": "10"},
				}},
			}
		}, lacks...)
	})
}

func TestChangesAreSeen(t *testing.T) {
	s := startServer(t, "arith.test. 0 A 10.0.0.1")
	w := watch(t, newResolver(t, s, "{service}.test.:80"))
	w.Expect("10.0.0.1:80")
	s.put("arith.test. 0 A 10.0.0.2")
	w.Expect("10.0.0.1:80 10.0.0.2:80")
	s.replace("arith.test.", "arith.test. 0 A 10.0.0.2")
	w.Expect("10.0.0.2:80")
	s.replace("arith.test.")
	w.Expect("") // no records of that type
	s.change(func() { delete(s.zone, "arith.test.") })
	before := s.count("A")
	// NXDOMAIN has the same effect.
	regtest.Eventually(t, regtest.Patience, "two more lookups", func() bool { return s.count("A") >= before+2 })
	w.Only()
	s.put("arith.test. 0 A 10.0.0.3")
	w.Expect("10.0.0.3:80")
}

func TestFailuresAreTrouble(t *testing.T) {
	s := startServer(t, "arith.test. 0 A 10.0.0.1")
	w := watch(t, newResolver(t, s, "{service}.test.:80", dns.Timeout(500*time.Millisecond)))
	w.Expect("10.0.0.1:80")
	for say, fail := range map[string]func(){
		"SERVFAIL":             func() { s.rcode[""] = mdns.RcodeServerFailure },
		"REFUSED":              func() { s.rcode[""] = mdns.RcodeRefused },
		"no answer: context d": func() { s.mute = true },
	} {
		s.change(fail)
		asked := s.count("A")
		regtest.Eventually(t, regtest.Patience, "a lookup that fails", func() bool { return s.count("A") > asked })
		for len(w.Troubles) > 0 { // with what was before
			<-w.Troubles
		}
		w.AwaitTrouble(say)
		w.Only("10.0.0.1:80")
		s.change(func() { s.rcode[""], s.mute = mdns.RcodeSuccess, false })
		w.Expect("10.0.0.1:80") // reported although nothing changed: the list is current again
	}
	s.stop()
	w.AwaitTrouble(s.address + ": read: connection refused")
	w.Only("10.0.0.1:80")
	s.start()
	w.Expect("10.0.0.1:80")
}

func TestStartWithoutServer(t *testing.T) {
	s := startServer(t, "arith.test. 0 A 10.0.0.1")
	s.stop()
	r := newResolver(t, s, "{service}.test.:80")
	w := watch(t, r)
	w.AwaitTrouble("connection refused")
	regtest.TimesOut(t, "List", "connection refused", func(ctx context.Context) error {
		_, err := registry.List(ctx, r, "arith")
		return err
	})
	w.Only()
	s.start()
	w.Expect("10.0.0.1:80")
}

func TestNextServer(t *testing.T) {
	bad, good := startServer(t), startServer(t, "arith.test. 0 A 10.0.0.1")
	bad.change(func() { bad.rcode[""] = mdns.RcodeServerFailure })
	r := newResolver(t, bad, "{service}.test.:80", dns.Servers(good.address))
	watch(t, r).Expect("10.0.0.1:80")
}

// A server that answers A queries but fails for AAAA must not remove instances.
func TestHalfAnAnswerIsTrouble(t *testing.T) {
	s := startServer(t, "arith.test. 0 A 10.0.0.1")
	broken := startServer(t)
	broken.change(func() { broken.rcode[""] = mdns.RcodeServerFailure })
	only4 := newResolver(t, s, "{service}.test.:80", dns.IPv4Only())
	watch(t, only4).Expect("10.0.0.1:80")
	if n := s.count("AAAA"); n != 0 {
		t.Errorf("%d questions for AAAA", n)
	}
	s.put("arith.test. 0 AAAA 2001:db8::1")
	watch(t, newResolver(t, s, "{service}.test.:80", dns.IPv6Only())).Expect("[2001:db8::1]:80")
}

func TestAliases(t *testing.T) {
	s := startServer(t, "arith.test. 0 CNAME b.test.", "b.test. 0 CNAME c.test.", "c.test. 0 A 10.0.0.1", "loop.test. 0 CNAME loop2.test.", "loop2.test. 0 CNAME loop.test.")
	watch(t, newResolver(t, s, "{service}.test.:80")).Expect("10.0.0.1:80")
	watch(t, newResolver(t, s, "loop.test.:80")).AwaitTrouble("aliases")
}

func TestSRV(t *testing.T) {
	s := startServer(t,
		"_arith._tcp.test. 0 SRV 10 60 8001 a.test.", "_arith._tcp.test. 0 SRV 10 0 8002 b.test.",
		"_arith._tcp.test. 0 SRV 20 0 8003 c.test.", "_arith._tcp.test. 0 SRV 30 5 8001 a.test.",
		"a.test. 0 A 10.0.0.1", "b.test. 0 A 10.0.0.2", "b.test. 0 AAAA 2001:db8::2", "c.test. 0 A 10.0.0.3",
	)
	const all = "10.0.0.1:8001*60 10.0.0.2:8002*1 10.0.0.3:8003-draining [2001:db8::2]:8002*1"
	w := watch(t, newResolver(t, s, "_{service}._tcp.test."))
	w.Expect(all)
	if n := s.count("A"); n != 0 {
		t.Errorf("%d questions for addresses that had come along", n)
	}
	s.change(func() { s.bare = true })
	watch(t, newResolver(t, s, "_{service}._tcp.test.")).Expect(all)
	if n := s.count("A"); n < 3 {
		t.Errorf("%d questions for the addresses of 3 targets", n)
	}
	s.change(func() { s.rcode["b.test."] = mdns.RcodeServerFailure })
	w.AwaitTrouble("b.test.") // a list without b would be wrong
	w.Only()
	s.replace("_arith._tcp.test.", "_arith._tcp.test. 0 SRV 0 0 0 .") // the record says that there is no such service
	w.Expect("")
	s.replace("_arith._tcp.test.", "_arith._tcp.test. 0 SRV 0 0 0 c.test.", "_arith._tcp.test. 0 SRV 0 0 9 a.test.")
	w.AwaitTrouble("port \"0\"")
	w.Expect("10.0.0.1:9")
}

// The second priority takes over after a hint that the first cannot be reached, until it can be.
func TestPriorities(t *testing.T) {
	listen := func(address string) net.Listener {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first, second := listen(servers.Address(t)), listen(servers.Address(t))
	defer func() { second.Close() }()
	port := func(l net.Listener) string { _, p, _ := net.SplitHostPort(l.Addr().String()); return p }
	s := startServer(t, "_arith._tcp.test. 3600 SRV 1 0 "+port(first)+" a.test.", "_arith._tcp.test. 3600 SRV 2 0 "+port(second)+" a.test.", "a.test. 3600 A 127.0.0.1")
	r := newResolver(t, s, "_{service}._tcp.test.")
	w := watch(t, r)
	state := func(wanted string) string {
		list := []string{first.Addr().String(), second.Addr().String()}
		for i := range list {
			if wanted != "both" && list[i] != wanted {
				list[i] += "-draining"
			}
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	w.Await(state(first.Addr().String()))
	r.Refresh("other") // not this service
	r.Refresh("arith") // the first priority can be reached: nothing changes
	first.Close()
	asked := s.count("SRV")
	for s.count("SRV") < asked+2 {
		r.Refresh("arith")
		time.Sleep(10 * time.Millisecond)
	}
	w.Await(state(second.Addr().String()))
	first = listen(first.Addr().String()) // back: found without a hint
	w.Await(state(first.Addr().String()))
	first.Close()
	second.Close()
	r.Refresh("arith")
	w.Await(state("both"))
	second = listen(second.Addr().String())
	w.Await(state(second.Addr().String()))
}

func TestThousandInstances(t *testing.T) {
	var records, want []string
	for i := range 1000 {
		ip := fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)
		records = append(records, "arith.test. 1 A "+ip, fmt.Sprintf("_arith._tcp.test. 1 SRV 0 1 80 i%d.test.", i), fmt.Sprintf("i%d.test. 1 A %s", i, ip))
		want = append(want, ip+":80")
	}
	slices.Sort(want)
	s := startServer(t, records...)
	watch(t, newResolver(t, s, "{service}.test.:80")).Expect(strings.Join(want, " "))
	if s.count("TCP") == 0 {
		t.Error("a thousand addresses came over UDP")
	}
	s.change(func() { s.bare = true }) // each address needs a query of its own
	watch(t, newResolver(t, s, "_{service}._tcp.test.")).Expect(strings.Join(want, "*1 ") + "*1")
}

func TestServerWithoutEDNS(t *testing.T) {
	s := startServer(t, "arith.test. 0 A 10.0.0.1")
	s.change(func() { s.edns = true })
	watch(t, newResolver(t, s, "{service}.test.:80")).Expect("10.0.0.1:80")
}

// With a TTL of an hour only a hint causes another lookup.
func TestRefresh(t *testing.T) {
	s := startServer(t, "arith.test. 3600 A 10.0.0.1")
	r := newResolver(t, s, "{service}.test.:80")
	w := watch(t, r)
	w.Expect("10.0.0.1:80")
	if n := s.count("A"); n != 1 {
		t.Errorf("%d questions for a record with a TTL of an hour", n)
	}
	s.replace("arith.test.", "arith.test. 3600 A 10.0.0.2")
	r.Refresh("arith")
	w.Expect("10.0.0.2:80")
}

func TestClose(t *testing.T) {
	s := startServer(t, "arith.test. 3600 A 10.0.0.1")
	r := newResolver(t, s, "{service}.test.:80")
	w := watch(t, r)
	w.Expect("10.0.0.1:80")
	r.Close()
	select {
	case err := <-w.Ended:
		if !errors.Is(err, registry.ErrClosed) {
			t.Errorf("Watch ended with %v", err)
		}
	case <-time.After(regtest.Patience):
		t.Error("Watch did not end")
	}
	if err := r.Watch(t.Context(), "arith", nil, nil); !errors.Is(err, registry.ErrClosed) {
		t.Errorf("Watch after Close = %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, say := range map[string]string{
		"":                         "use 1 to 253",
		"arith:0":                  "1 to 65535",
		"arith:http":               "1 to 65535",
		"10.0.0.1:80":              "use tcp://",
		"a b.test:80":              "use letters",
		"a..test:80":               "use 1 to 63",
		strings.Repeat("x", 64):    "use 1 to 63",
		strings.Repeat("xy.", 100): "use 1 to 253",
	} {
		if _, err := dns.New(name); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("New(%q) = %v, want %q", name, err, say)
		}
	}
	for _, opts := range [][]dns.Option{
		{dns.Servers()},
		{dns.Servers("h:0")},
		{dns.Servers("h:x")},
		{dns.Servers(":53")},
		{dns.TTL(0, 1)},
		{dns.TTL(2, 1)},
		{dns.Timeout(0)},
		{dns.IPv4Only(), dns.IPv6Only()},
	} {
		if _, err := dns.New("arith:80", opts...); err == nil {
			t.Error("New takes options that cannot work")
		}
	}
	r, err := dns.New(strings.Repeat("x.", 120)+"{service}:80", dns.Servers("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Watch(t.Context(), strings.Repeat("s", 63), nil, nil); err == nil || !strings.Contains(err.Error(), "use 1 to 253") {
		t.Errorf("Watch of a name that is too long = %v", err)
	}
}

func TestParse(t *testing.T) {
	for target, want := range map[string]string{
		"dns:///arith.test:80":                           " arith.test:80",
		"dns:///_arith._tcp.test":                        " _arith._tcp.test",
		"dns://10.0.0.53/arith.test:80":                  "10.0.0.53 arith.test:80",
		"dns://10.0.0.53:5353,ns.test:53/arith.test.:80": "10.0.0.53:5353,ns.test:53 arith.test.:80",
		"dns://[2001:db8::53]:53/arith":                  "[2001:db8::53]:53 arith",
		"etcd:///arith":                                  "error use dns:///host:port",
		"dns://arith.test:80":                            `error "arith.test:80" is a DNS server: use dns:///arith.test:80`,
		"dns:///":                                        "error has no name",
		"dns:///arith:80?x=1":                            "error use options",
		"dns://user@h/arith:80":                          "error use options",
		"dns:///{service}.test:80":                       "error which is for dns.New",
		"dns:///a/b:80":                                  "error use letters",
		"dns://h:0/arith:80":                             "error names a bad server",
	} {
		servers, name, err := dns.Parse(regtest.URL(t, target))
		got := strings.Join(servers, ",") + " " + name
		if say, bad := strings.CutPrefix(want, "error "); bad {
			if err == nil || !strings.Contains(err.Error(), say) {
				t.Errorf("%s = %v, want %q", target, err, say)
			}
		} else if err != nil || got != want {
			t.Errorf("%s = %q, %v, want %q", target, got, err, want)
		}
	}
}

type args struct{ A, B int }

// A client with a DNS target: calls reach a server; when it moves to another address, the client
// learns of it long before the TTL is over, because it looks up the name again when no instance
// can be reached.
func TestDial(t *testing.T) {
	serve := func(l net.Listener) *anser.Server {
		s := anser.NewServer()
		anser.Handle(s, "Arith.Mul", func(_ context.Context, in *args) (*args, error) { return &args{A: in.A * in.B}, nil }, anser.Idempotent())
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		t.Cleanup(func() { s.Close(); <-served })
		return s
	}
	here, err := net.Listen("tcp", servers.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(here.Addr().String())
	there, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Fatal(err)
	}
	first := serve(here)
	s := startServer(t, "arith.test. 3600 A 127.0.0.1")
	c, err := anser.Dial("dns://"+s.address+"/arith.test.:"+port, dns.Scheme(), anser.NoSnapshot(), anser.Idempotent())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	call := func() {
		t.Helper()
		out, err := anser.Call[args](regtest.Within(t), c, "Arith.Mul", &args{7, 8})
		if err != nil || out.A != 56 {
			t.Fatalf("%v, %v", out, err)
		}
	}
	call()
	serve(there)
	s.replace("arith.test.", "arith.test. 3600 A 127.0.0.2")
	first.Close()
	call()
}
