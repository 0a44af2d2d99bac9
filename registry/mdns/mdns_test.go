package mdns_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/mdns"
	"github.com/anser-rpc/anser/registry/registrytest"
)

var kinds atomic.Int64

// newKind returns a type that no other test uses.
func newKind() string { return fmt.Sprintf("_t%d._tcp", kinds.Add(1)) }

func open(t *testing.T, opts ...mdns.Option) *mdns.Registry {
	t.Helper()
	r, err := mdns.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// No server can lose leases here; TestProcessDies replaces that part.
func TestConformance(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		kind := newKind()
		t.Cleanup(func() { configure() }) // in case a failure left it changed
		return registrytest.Fixture{
			Open: func() registry.Registry { return open(t, mdns.Type(kind)) },
			Stop: func() {
				if err := ip("link", "set", "lo", "down"); err != nil {
					t.Fatal(err)
				}
			},
			Start: func() {
				if err := ip("link", "set", "lo", "up"); err != nil {
					t.Fatal(err)
				}
			},
		}
	}, registrytest.Leases, registrytest.Documents)
}

const childEnv = "ANSER_MDNS_ANNOUNCE" // the type that a child process announces

// announceAsChild announces an instance until the process is killed.
func announceAsChild(kind string) {
	r, err := mdns.New(mdns.Type(kind), mdns.TTL(time.Second))
	if err == nil {
		err = r.Register(context.Background(), regtest.Instance("10.0.0.9:1"))
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("announced")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0) // without a goodbye
}

// An instance stays for many of its TTLs while its process lives, and is removed after the process
// is killed.
func TestProcessDies(t *testing.T) {
	kind := newKind()
	r := open(t, mdns.Type(kind))
	regtest.Register(t, r, regtest.Instance("10.0.0.1:1"))
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+kind)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	regtest.AwaitList(t, r, "10.0.0.1:1 10.0.0.9:1")
	time.Sleep(2500 * time.Millisecond) // more than twice its TTL: without announcements it would be gone
	regtest.AwaitList(t, r, "10.0.0.1:1 10.0.0.9:1")
	child.Process.Kill()
	regtest.AwaitList(t, r, "10.0.0.1:1")
}

// Programs that do not know this package can use it, and the other way round: the messages are
// those of DNS-SD.
func TestMessages(t *testing.T) {
	kind := newKind()
	c := listen(t)
	r := open(t, mdns.Type(kind))
	regtest.Register(t, r, registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Zone: "north"})
	full := kind + ".local."
	var name, target string
	seen := make(map[dnsmessage.Type]bool)
	for !seen[dnsmessage.TypePTR] || !seen[dnsmessage.TypeSRV] || !seen[dnsmessage.TypeTXT] || !seen[dnsmessage.TypeA] {
		for _, a := range c.answers(full) {
			if a.Header.TTL != 10 {
				t.Errorf("%v has the TTL %d", a.Header.Type, a.Header.TTL)
			}
			seen[a.Header.Type] = true
			switch b := a.Body.(type) {
			case *dnsmessage.PTRResource:
				name = b.PTR.String()
			case *dnsmessage.SRVResource:
				if target = b.Target.String(); a.Header.Name.String() != name || b.Port != 8972 {
					t.Errorf("SRV %+v of %s", b, a.Header.Name)
				}
			case *dnsmessage.AResource:
				if a.Header.Name.String() != target || b.A != [4]byte{10, 0, 0, 1} {
					t.Errorf("A %v of %s", b.A, a.Header.Name)
				}
			case *dnsmessage.TXTResource:
				if all := strings.Join(b.TXT, ""); !strings.Contains(all, `"zone":"north"`) || len(b.TXT) < 4 {
					t.Errorf("TXT %q", b.TXT)
				}
			}
		}
	}
	if err := r.Deregister(t.Context(), regtest.Instance("10.0.0.1:8972")); err != nil {
		t.Fatal(err)
	}
	for gone := false; !gone; {
		for _, a := range c.answers(full) {
			gone = gone || a.Header.TTL == 0 && a.Header.Type == dnsmessage.TypePTR
		}
	}
}

// Hostile or foreign messages change nothing.
func TestForeignMessages(t *testing.T) {
	kind := newKind()
	c := listen(t)
	r := open(t, mdns.Type(kind))
	regtest.Register(t, r, regtest.Instance("10.0.0.1:1"))
	var good dnsmessage.Resource
	for good.Body == nil {
		for _, a := range c.answers(kind + ".local.") {
			if a.Header.Type == dnsmessage.TypeTXT {
				good = a
			}
		}
	}
	txt := good.Body.(*dnsmessage.TXTResource).TXT
	change := func(from, to string) []string {
		var list []string
		for _, s := range txt {
			list = append(list, strings.Replace(s, from, to, 1))
		}
		return list
	}
	other := good.Header
	other.Name = dnsmessage.MustNewName("arith-else." + kind + ".local.")
	for what, a := range map[string]dnsmessage.Resource{
		"no owner":          {Header: good.Header, Body: &dnsmessage.TXTResource{TXT: change("o=", "x=")}},
		"no time":           {Header: good.Header, Body: &dnsmessage.TXTResource{TXT: change("t=", "t=x")}},
		"another name":      {Header: other, Body: &dnsmessage.TXTResource{TXT: change("o=", "o=x")}},
		"a broken record":   {Header: good.Header, Body: &dnsmessage.TXTResource{TXT: change(`"address"`, `"adress"`)}},
		"an older record":   {Header: good.Header, Body: &dnsmessage.TXTResource{TXT: []string{"o=x", "t=1", `r0={"service":"arith","address":"10.0.0.1:1","zone":"stolen"}`}}},
		"a stranger's bye":  {Header: bye(good.Header), Body: &dnsmessage.TXTResource{TXT: []string{"o=x", "t=9223372036854775807"}}},
		"nothing":           {Header: good.Header, Body: &dnsmessage.TXTResource{TXT: []string{""}}},
		"an unknown record": {Header: good.Header, Body: &dnsmessage.UnknownResource{Type: 4711, Data: []byte("x")}},
	} {
		m := dnsmessage.Message{Header: dnsmessage.Header{Response: true}, Answers: []dnsmessage.Resource{a}}
		data, err := m.Pack()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		c.send(data)
	}
	c.send([]byte("not a message"))
	c.send(nil)
	// A registry that has received this instance has also received all of the messages above.
	sentinel := open(t, mdns.Type(kind))
	regtest.Register(t, sentinel, regtest.Instance("10.0.0.2:1"))
	regtest.AwaitList(t, r, "10.0.0.1:1 10.0.0.2:1")
	regtest.AwaitList(t, sentinel, "10.0.0.1:1 10.0.0.2:1")
	list, err := registry.List(t.Context(), sentinel, "arith")
	if err != nil || len(list) != 2 || list[0].Zone != "" {
		t.Errorf("%+v, %v", list, err)
	}
}

func bye(h dnsmessage.ResourceHeader) dnsmessage.ResourceHeader {
	h.TTL = 0
	return h
}

// neighbour is a program on the network without Anser.
type neighbour struct {
	t    *testing.T
	conn *net.UDPConn
}

var group = &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}

func listen(t *testing.T) *neighbour {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.ListenMulticastUDP("udp4", lo, group)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &neighbour{t, c}
}

// answers returns the records of the next message that has one of the type.
func (n *neighbour) answers(kind string) []dnsmessage.Resource {
	n.t.Helper()
	n.conn.SetReadDeadline(time.Now().Add(regtest.Patience))
	buf := make([]byte, 64<<10)
	for {
		size, err := n.conn.Read(buf)
		if err != nil {
			n.t.Fatal(err)
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:size]) == nil && len(m.Answers) > 0 && strings.HasSuffix(m.Answers[0].Header.Name.String(), kind) {
			return m.Answers
		}
	}
}

// send sends to the group from another port, without receiving it itself.
func (n *neighbour) send(data []byte) {
	n.t.Helper()
	c, err := net.DialUDP("udp4", nil, group)
	if err != nil {
		n.t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(data); err != nil {
		n.t.Fatal(err)
	}
}

func TestTooLarge(t *testing.T) {
	r := open(t, mdns.Type(newKind()))
	in := regtest.Instance("10.0.0.1:1")
	in.Tags = map[string]string{"x": strings.Repeat("\x01", 12<<10)} // six bytes each in JSON
	if err := r.Register(t.Context(), in); err == nil || !strings.Contains(err.Error(), "a registry with a server") {
		t.Errorf("Register = %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []mdns.Option{
		mdns.Type(""), mdns.Type("anser"), mdns.Type("_a._sctp"), mdns.Type("_a/b._tcp"), mdns.Type("_" + strings.Repeat("x", 16) + "._tcp"),
		mdns.TTL(0), mdns.TTL(time.Millisecond), mdns.Interfaces(),
	} {
		if r, err := mdns.New(o); err == nil {
			r.Close()
			t.Error("New takes an option that cannot work")
		}
	}
	kind := newKind()
	r := open(t, mdns.Type(kind), mdns.Interfaces("lo"))
	regtest.Register(t, r, regtest.Instance("10.0.0.1:1"))
	regtest.AwaitList(t, open(t, mdns.Type(kind)), "10.0.0.1:1")
	nowhere := open(t, mdns.Interfaces("nope0"))
	if _, err := nowhere.Services(t.Context()); err == nil || !strings.Contains(err.Error(), "no network interface") {
		t.Errorf("Services without an interface = %v", err)
	}
	for target, say := range map[string]string{
		"mdns://host/arith": "use mdns:///service",
		"mdns:///":          "has no name",
		"mdns:///a/b":       "use letters",
		"mdns:///arith?x":   "use mdns:///service",
	} {
		_, _, err := mdns.Scheme().Open(regtest.URL(t, target))
		regtest.Refused(t, target, err, say)
	}
}

type args struct{ A, B int }

// A server announces itself, and a client finds it by a string.
func TestDial(t *testing.T) {
	kind := newKind()
	s := anser.NewServer(anser.Announce(open(t, mdns.Type(kind)), registry.Instance{Service: "arith"}))
	anser.Handle(s, "Arith.Mul", func(_ context.Context, in *args) (*args, error) { return &args{A: in.A * in.B}, nil })
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() { s.Close(); <-served }()
	c, err := anser.Dial("mdns:///arith", mdns.Scheme(mdns.Type(kind)), anser.NoSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	regtest.AwaitList(t, open(t, mdns.Type(kind)), l.Addr().String())
	out, err := anser.Call[args](regtest.Within(t), c, "Arith.Mul", &args{7, 8}, anser.Idempotent())
	if err != nil || out.A != 56 {
		t.Fatalf("%v, %v", out, err)
	}
}

func ExampleScheme() {
	// The server has the option anser.Announce(r, registry.Instance{Service: "arith"}) with r of
	// mdns.New().
	c, err := anser.Dial("mdns:///arith", mdns.Scheme(), anser.NoSnapshot())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println(c.Status().Target)
	// Output: mdns:///arith
}
