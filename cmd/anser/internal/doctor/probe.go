package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

// probe examines one address, step by step. A step that fails ends it.
type probe struct {
	findings
	config   *Config
	endpoint endpoint
	timing   Timing

	network, peer string // what to dial, after connect
	tls           bool   // connections have TLS
	trusted       bool   // the certificate was verified, or there is no TLS
	anser         bool   // the server speaks Anser
	methods       []anser.MethodInfo
	described     bool // methods is what the server says
}

func (c *Config) newProbe(e endpoint, subject string) *probe {
	return &probe{
		findings: findings{subject: subject}, config: c, endpoint: e, timing: Timing{Subject: plain(e.address)},
		tls: e.secure() || c.TLS != nil && (e.direct() || !e.known()), trusted: true,
	}
}

// run reaches the address, and asks the server for its methods. It reports whether the server
// answered.
func (p *probe) run(ctx context.Context) bool {
	if !p.reach(ctx) {
		return false
	}
	if p.endpoint.scheme != "quic" && p.tls && !p.checkTLS(ctx) {
		return false
	}
	if !p.tls && p.endpoint.direct() && !p.endpoint.local() {
		p.add("tls", Warn, "use TLS, or a network that is guarded otherwise", "no TLS: the network between can read and change calls")
	}
	switch {
	case !p.endpoint.known():
		p.note("handshake", "%s:// is not a transport of this command: only the connection was examined", p.endpoint.scheme)
		return true
	case p.endpoint.direct():
		p.greet(ctx)
	default:
		p.anser = true // as far as is known: the description will tell
	}
	if !p.anser || !p.trusted {
		return p.anser
	}
	return p.describe(ctx)
}

// reach looks up the host and connects to its addresses.
func (p *probe) reach(ctx context.Context) bool {
	e := p.endpoint
	if e.scheme == "unix" {
		p.network, p.peer = "unix", e.host
		return p.connect(ctx, []string{e.host})
	}
	p.network = "tcp"
	hosts, ok := p.lookup(ctx)
	if !ok {
		return false
	}
	if e.scheme == "quic" {
		p.peer = hosts[0]
		return true
	}
	return p.connect(ctx, hosts)
}

// maxHosts is how many addresses of a host are tried.
const maxHosts = 8

// lookup returns the addresses of the host with the port.
func (p *probe) lookup(ctx context.Context) ([]string, bool) {
	e := p.endpoint
	if _, err := netip.ParseAddr(e.host); err == nil {
		return []string{net.JoinHostPort(e.host, e.port)}, true
	}
	ctx, cancel := p.config.within(ctx)
	defer cancel()
	var found []netip.Addr
	err := p.timing.step("DNS", func() (err error) {
		found, err = p.config.resolver().LookupNetIP(ctx, "ip", e.host)
		return err
	})
	failure, _ := errors.AsType[*net.DNSError](err)
	switch {
	case err == nil && len(found) > 0:
	case failure != nil && failure.IsNotFound:
		p.add("dns", Fail, "correct the name, or add it to the DNS", "the name %s does not exist", e.host)
		return nil, false
	case isTimeout(err):
		p.add("dns", Fail, "check the servers in /etc/resolv.conf, and the network to them", "the DNS server has not answered within %v", p.config.Timeout)
		return nil, false
	default:
		p.add("dns", Fail, "check the name, and the DNS servers of this machine", "the lookup of %s failed: %v", e.host, err)
		return nil, false
	}
	var list, texts []string
	for _, a := range found[:min(len(found), maxHosts)] {
		list, texts = append(list, net.JoinHostPort(a.Unmap().String(), e.port)), append(texts, a.Unmap().String())
	}
	p.pass("dns", "%s is %s (%s)", e.host, strings.Join(texts, ", "), table.Duration(p.timing.took()))
	return list, true
}

// connect tries all addresses, and keeps the first that works for the steps after it.
func (p *probe) connect(ctx context.Context, hosts []string) bool {
	working, failed, advice := "", "", ""
	for _, host := range hosts {
		began := time.Now()
		err := p.timing.step("connect", func() error {
			nc, err := p.dialTo(ctx, host)
			if err == nil {
				p.measure(nc)
				nc.Close()
			}
			return err
		})
		switch {
		case err == nil && working == "":
			working = host
			p.pass("tcp", "connects to %s (%s)", host, table.Duration(time.Since(began)))
		case err != nil && failed == "":
			failed, advice = p.dialFailure(host, err)
		}
	}
	p.peer = working
	switch {
	case working == "":
		p.add("tcp", Fail, advice, "%s", failed)
	case failed != "":
		p.add("tcp", Warn, "clients that choose this address wait in vain: take it out of the DNS, or make the server listen at it", "%s", failed)
	}
	return working != ""
}

// dialFailure says why a connection failed, and what to do.
func (p *probe) dialFailure(host string, err error) (text, advice string) {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(err.Error(), "refused it"):
		return host + " refuses connections", "no process listens there: start the server, or correct the address"
	case isTimeout(err):
		return host + " has not answered within " + p.config.Timeout.String(), "the host is down, or a firewall drops the packets"
	case errors.Is(err, os.ErrNotExist):
		return "there is no socket " + host, "start the server, or correct the path"
	case errors.Is(err, os.ErrPermission):
		return "this user may not open the socket " + host, "run as a user with access to it"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to " + host, "check the network of this machine, a VPN for example"
	case errors.Is(err, syscall.EMFILE):
		return "this process has no file descriptor left", "raise the limit with ulimit -n"
	}
	return "the connection to " + host + " failed: " + err.Error(), "check the address and the network"
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// dialTo connects to an address. The deadline of the connection is that of a step.
func (p *probe) dialTo(ctx context.Context, host string) (net.Conn, error) {
	ctx, cancel := p.config.within(ctx)
	defer cancel()
	nc, err := new(net.Dialer).DialContext(ctx, p.network, host)
	if err == nil {
		nc.SetDeadline(time.Now().Add(p.config.Timeout))
	}
	return nc, err
}

// open connects to the address that works, with TLS if the server has it. Its certificate is not
// verified: nothing secret may be sent.
func (p *probe) open(ctx context.Context, protocols ...string) (net.Conn, error) {
	nc, err := p.dialTo(ctx, p.peer)
	if err != nil || !p.tls {
		return nc, err
	}
	config := p.tlsConfig()
	config.NextProtos = protocols
	tc := tls.Client(nc, config)
	if err := tc.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	nc.SetDeadline(time.Now().Add(p.config.Timeout))
	return tc, nil
}
