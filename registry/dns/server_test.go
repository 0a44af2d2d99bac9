package dns_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	mdns "github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/dns"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a DNS server on loopback, over UDP and TCP.
type server struct {
	t       *testing.T
	address string
	stop    func()

	mu    sync.Mutex // guards the fields below
	zone  map[string][]mdns.RR
	rcode map[string]int // by name, or by "" for all
	mute  bool           // does not answer
	edns  bool           // rejects queries with EDNS
	bare  bool           // sends no additional records
	asked map[string]int // queries by type, and by "TCP"
}

func startServer(t *testing.T, records ...string) *server {
	s := &server{t: t, zone: make(map[string][]mdns.RR), rcode: make(map[string]int), asked: make(map[string]int)}
	s.put(records...)
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

// start starts the server, on its previous address if it had one.
func (s *server) start() {
	s.t.Helper()
	if s.address == "" {
		s.address = servers.Address(s.t)
	}
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp", s.address)
	if err != nil {
		l.Close()
		s.t.Fatal(err)
	}
	var running, up sync.WaitGroup
	up.Add(2)
	both := []*mdns.Server{
		{Listener: l, Handler: s, NotifyStartedFunc: up.Done}, {PacketConn: pc, Handler: s, NotifyStartedFunc: up.Done},
	}
	for _, server := range both {
		running.Go(func() { server.ActivateAndServe() })
	}
	up.Wait()
	s.stop = sync.OnceFunc(func() {
		for _, server := range both {
			server.Shutdown()
		}
		running.Wait()
	})
}

// put adds records in the form of zone files.
func (s *server) put(records ...string) {
	s.t.Helper()
	all := s.parse(records)
	s.change(func() { s.addLocked(all) })
}

func (s *server) parse(records []string) (all []mdns.RR) {
	s.t.Helper()
	for _, r := range records {
		rr, err := mdns.NewRR(r)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, rr)
	}
	return all
}

func (s *server) addLocked(all []mdns.RR) {
	for _, rr := range all {
		name := strings.ToLower(rr.Header().Name)
		s.zone[name] = append(s.zone[name], rr)
	}
}

// change changes the server's answers.
func (s *server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// replace replaces all records of a name atomically: no query sees it without any.
func (s *server) replace(name string, records ...string) {
	s.t.Helper()
	all := s.parse(records)
	s.change(func() {
		s.zone[name] = nil
		s.addLocked(all)
	})
}

func (s *server) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

// ServeDNS implements the handler of the server.
func (s *server) ServeDNS(w mdns.ResponseWriter, q *mdns.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	question := q.Question[0]
	s.asked[mdns.TypeToString[question.Qtype]]++
	_, overTCP := w.RemoteAddr().(*net.TCPAddr)
	if overTCP {
		s.asked["TCP"]++
	}
	if s.mute {
		return
	}
	m := new(mdns.Msg)
	m.SetReply(q)
	name := strings.ToLower(question.Name)
	all, known := s.zone[name]
	m.Rcode = s.rcode[""]
	if code, ok := s.rcode[name]; ok {
		m.Rcode = code
	}
	if s.edns && q.IsEdns0() != nil {
		m.Rcode = mdns.RcodeFormatError
	}
	if m.Rcode == mdns.RcodeSuccess {
		s.fill(m, all, question)
		if !known {
			m.Rcode = mdns.RcodeNameError
		}
	}
	size := mdns.MinMsgSize
	if o := q.IsEdns0(); o != nil {
		size = int(o.UDPSize())
	}
	if overTCP {
		size = mdns.MaxMsgSize
	}
	m.Truncate(size)
	w.WriteMsg(m)
}

func (s *server) fill(m *mdns.Msg, all []mdns.RR, question mdns.Question) {
	for _, rr := range all {
		if h := rr.Header(); h.Rrtype == question.Qtype || h.Rrtype == mdns.TypeCNAME {
			m.Answer = append(m.Answer, rr)
		}
		if srv, ok := rr.(*mdns.SRV); ok && question.Qtype == mdns.TypeSRV && !s.bare {
			m.Extra = append(m.Extra, s.zone[strings.ToLower(srv.Target)]...)
		}
	}
	if len(m.Answer) == 0 {
		soa, _ := mdns.NewRR("test. 30 IN SOA ns.test. admin.test. 1 60 60 60 1")
		m.Ns = append(m.Ns, soa)
	}
}

// newResolver returns a resolver that uses the server and looks up often.
func newResolver(t *testing.T, s *server, name string, opts ...dns.Option) *dns.Resolver {
	t.Helper()
	all := append([]dns.Option{dns.Servers(s.address), dns.TTL(50*time.Millisecond, time.Hour), dns.Timeout(regtest.Patience)}, opts...)
	r, err := dns.New(name, all...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// watch watches the service arith.
func watch(t *testing.T, r registry.Resolver) *regtest.Watch { return regtest.NewWatchOf(t, r, brief) }

func brief(list []registry.Instance) string {
	var parts []string
	for _, in := range list {
		part := in.Address
		if in.Weight > 0 {
			part += fmt.Sprintf("*%d", in.Weight)
		}
		if in.State != registry.Up {
			part += "-" + in.State.String()
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}
