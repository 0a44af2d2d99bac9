package anser_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/transport/transporttest"
)

// pretended is an in-memory listener with another address.
type pretended struct {
	net.Listener
	addr net.Addr
}

func (p pretended) Addr() net.Addr { return p.addr }

// stating is a listener that states its protection.
type stating struct {
	pretended
	says anser.Protection
}

func (s stating) Protection() anser.Protection { return s.says }

// wrapping is a listener that embeds another one, as that of x/net/netutil does.
type wrapping struct{ net.Listener }

// unwrapping is a wrapping listener with a method Unwrap.
type unwrapping struct{ wrapping }

func (u unwrapping) Unwrap() net.Listener { return u.Listener }

// A server serves other machines only with TLS and authentication, whatever kind of listener it
// has.
func TestServeInPublic(t *testing.T) {
	a := transporttest.NewAuthority(t)
	door := anser.Authenticate(new(door))
	public := &net.TCPAddr{IP: net.IPv4zero, Port: 8972}
	const both, encrypted = "no TLS and no authentication: ", "no authentication: "
	at := func(addr net.Addr) func(net.Listener) net.Listener {
		return func(l net.Listener) net.Listener { return pretended{l, addr} }
	}
	says := func(p anser.Protection) func(net.Listener) net.Listener {
		return func(l net.Listener) net.Listener { return stating{pretended{l, public}, p} }
	}
	for name, c := range map[string]struct {
		listener func(net.Listener) net.Listener
		opts     []anser.ServerOption
		want     string // of the error; "" if the server serves
	}{
		"memory":          {listener: func(l net.Listener) net.Listener { return wrapping{l} }},
		"loopback":        {listener: at(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8972})},
		"loopback IPv6":   {listener: at(&net.TCPAddr{IP: net.IPv6loopback, Port: 8972})},
		"loopback UDP":    {listener: at(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8972})},
		"unix":            {listener: at(&net.UnixAddr{Name: "/run/x", Net: "unix"})},
		"wrapped":         {listener: func(l net.Listener) net.Listener { return wrapping{pretended{l, public}} }, want: both},
		"wrapped, risk":   {at(public), []anser.ServerOption{anser.InsecurePublic()}, ""},
		"wrapped, TLS":    {at(public), []anser.ServerOption{serverTLS(t, a, "127.0.0.1")}, encrypted},
		"wrapped, both":   {at(public), []anser.ServerOption{serverTLS(t, a, "127.0.0.1"), door}, ""},
		"wrapped, login":  {at(public), []anser.ServerOption{door}, "no TLS: "},
		"IPv6":            {listener: at(&net.TCPAddr{IP: net.IPv6unspecified, Port: 1}), want: both},
		"UDP":             {listener: at(&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}), want: both},
		"of a transport":  {listener: at(pigeonAddr("192.0.2.1:1")), want: `serve on "pigeon://192.0.2.1:1"`},
		"near":            {listener: at(pigeonAddr("127.0.0.1:1"))},
		"unknown":         {listener: at(pigeonAddr("the roof")), want: "anser.InsecurePublic"},
		"unknown, risk":   {at(pigeonAddr("the roof")), []anser.ServerOption{anser.InsecurePublic()}, ""},
		"no address":      {listener: at(nil), want: "no address"},
		"crypto/tls":      {listener: func(l net.Listener) net.Listener { return tls.NewListener(pretended{l, public}, nil) }, want: encrypted},
		"crypto/tls both": {func(l net.Listener) net.Listener { return tls.NewListener(pretended{l, public}, nil) }, []anser.ServerOption{door}, ""},
		"local":           {listener: says(anser.Protection{Local: true})},
		"encrypted":       {listener: says(anser.Protection{Encrypted: true}), want: encrypted},
		"encrypted, door": {says(anser.Protection{Encrypted: true}), []anser.ServerOption{door}, ""},
		"mutual":          {listener: says(anser.Protection{Encrypted: true, Authenticated: true})},
		"forwarded": {listener: func(l net.Listener) net.Listener {
			return unwrapping{wrapping{unwrapping{wrapping{says(anser.Protection{Encrypted: true, Authenticated: true})(l)}}}}
		}},
		"of HTTP":         {listener: says(anser.Protection{EachConn: true}), want: "no TLS: "},
		"of HTTPS":        {listener: says(anser.Protection{EachConn: true, Encrypted: true})},
		"of HTTP with it": {says(anser.Protection{EachConn: true}), []anser.ServerOption{serverTLS(t, a, "127.0.0.1")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := anser.NewServer(append(c.opts, silent)...)
			l := c.listener(new(ansertest.Network).Listen("a:1"))
			served := make(chan error, 1)
			go func() { served <- s.Serve(l) }()
			if c.want != "" {
				if err := <-served; err == nil || !strings.Contains(err.Error(), c.want) || c.want != "no address" && !strings.Contains(err.Error(), "anser.InsecurePublic") {
					t.Errorf("%v; want %q", err, c.want)
				}
				return
			}
			eventually(t, "it serves", func() bool { return len(s.Addrs()) == 1 || len(served) == 1 })
			s.Close()
			if err := <-served; err != anser.ErrServerClosed {
				t.Error(err)
			}
		})
	}
}

// itself is a listener that wraps itself.
type itself struct{ pretended }

func (i itself) Unwrap() net.Listener { return i }

func TestProtectionOfAListenerThatWrapsItself(t *testing.T) {
	if p := anser.ProtectionOf(itself{pretended{new(ansertest.Network).Listen("a:1"), pigeonAddr("x:1")}}); p != (anser.Protection{}) {
		t.Error(p)
	}
}

// elsewhere is an in-memory connection whose local address is that of a public interface.
type elsewhere struct{ net.Conn }

func (elsewhere) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443} }

// secure is a connection with TLS below it.
type secure struct {
	net.Conn
	state tls.ConnectionState
}

func (s secure) ConnectionState() tls.ConnectionState { return s.state }

// gateway is a listener whose connections differ, such as those from an HTTP server.
type gateway struct {
	net.Listener
	each func(net.Conn) net.Conn
}

func (g gateway) Protection() anser.Protection {
	return anser.Protection{Encrypted: true, EachConn: true}
}

func (g gateway) Accept() (net.Conn, error) {
	nc, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return g.each(nc), nil
}

// If the connections of a listener differ, those from other machines without protection are
// refused.
func TestEachConnectionIsChecked(t *testing.T) {
	certificates := tls.ConnectionState{VerifiedChains: make([][]*x509.Certificate, 1)}
	for name, c := range map[string]struct {
		each func(net.Conn) net.Conn
		opts []anser.ServerOption
		want string
	}{
		"near":         {each: func(nc net.Conn) net.Conn { return nc }},
		"plain":        {each: func(nc net.Conn) net.Conn { return elsewhere{nc} }, want: "no TLS and no authentication: "},
		"plain, risk":  {func(nc net.Conn) net.Conn { return elsewhere{nc} }, []anser.ServerOption{anser.InsecurePublic()}, ""},
		"TLS":          {each: func(nc net.Conn) net.Conn { return secure{Conn: elsewhere{nc}} }, want: "no authentication: "},
		"certificates": {each: func(nc net.Conn) net.Conn { return secure{elsewhere{nc}, certificates} }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				serve(t, gateway{network.Listen("a:1"), c.each}, map[string]handler{"Echo.Say": echo}, c.opts...)
				client := dial(t, "a:1", anser.Dialer(network.Dial), anser.Timeout(time.Second))
				_, err := call(t.Context(), client, "Echo.Say", "hello")
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v; want %q", err, c.want)
				}
			})
		})
	}
}

// Certificates that the server's own TLS would require do not count if the TLS of a listener
// replaces it.
func TestCertificatesOfAnotherTLS(t *testing.T) {
	mutual := anser.TLS(transporttest.NewAuthority(t).Server(t, true))
	public := &net.TCPAddr{IP: net.IPv4zero, Port: 8972}
	each := func(nc net.Conn) net.Conn { return secure{Conn: elsewhere{nc}} }
	for name, listener := range map[string]func(net.Listener) net.Listener{
		"each": func(l net.Listener) net.Listener { return gateway{l, each} },
		"encrypted": func(l net.Listener) net.Listener {
			return stating{pretended{wrapping{gateway{l, each}}, public}, anser.Protection{Encrypted: true}}
		},
		"unknown": func(l net.Listener) net.Listener { return pretended{wrapping{gateway{l, each}}, public} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				serve(t, listener(network.Listen("a:1")), map[string]handler{"Echo.Say": echo}, mutual)
				client := dial(t, "a:1", anser.Dialer(network.Dial), anser.Timeout(time.Second))
				if _, err := call(t.Context(), client, "Echo.Say", "hello"); err == nil || !strings.Contains(err.Error(), "no authentication: ") {
					t.Errorf("%v; want no authentication", err)
				}
			})
		})
	}
}
