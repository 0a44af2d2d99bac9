package anser_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/transport/transporttest"
)

// carrier returns a transport over an in-memory network.
func carrier(scheme string, network *ansertest.Network) anser.Transport {
	return anser.Transport{Scheme: scheme, Dial: func(ctx context.Context, address string, _ *tls.Config) (net.Conn, error) {
		return network.Dial(ctx, scheme, address)
	}}
}

// Addresses of several transports can be mixed, in a target and in a registry.
func TestTransport(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		for _, name := range []string{"a:1", "b:2", "c:3/path"} {
			serve(t, network.Listen(name), map[string]handler{"Echo.Say": echo})
		}
		c := dial(t, "pigeon://a:1, b:2", carrier("pigeon", network))
		if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
			t.Error(out, err)
		}
		var addresses []string
		for _, in := range c.Status().Instances {
			addresses = append(addresses, in.Address)
		}
		if got := strings.Join(addresses, " "); got != "pigeon://a:1 pigeon://b:2" {
			t.Error(got)
		}
		f := newFeed()
		c = dial(t, "fed://arith", f.scheme(), carrier("pigeon", network), carrier("raven", network), anser.Timeout(time.Minute))
		f.list("raven://c:3/path")
		if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
			t.Error(out, err)
		}
		// An address with an unknown scheme fails, and says what to do; the other one is used.
		f.list("owl://a:1")
		_, err := call(context.Background(), c, "Echo.Say", "hello", anser.WithFailMode(anser.Failfast))
		if e := fault(t, err); e.Outcome != anser.NotSent || !strings.Contains(e.Message, "no transport for owl://a:1: give Dial one") {
			t.Error(err)
		}
		f.list("owl://a:1", "pigeon://b:2")
		if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
			t.Error(out, err)
		}
	})
}

func TestTransportMistakes(t *testing.T) {
	network := new(ansertest.Network)
	for want, tr := range map[string]anser.Transport{
		"has no function Dial":                          {Scheme: "x"},
		"needs a scheme of lower-case letters":          carrier("", network),
		`"Pigeon" needs a scheme of lower-case letters`: carrier("Pigeon", network),
	} {
		if _, err := anser.Dial("a:1", tr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	if _, err := anser.Dial("pigeon://a", carrier("pigeon", network)); err == nil || !strings.Contains(err.Error(), "has no port") {
		t.Error(err)
	}
	if _, err := anser.NewServer(silent).Listen("quic://127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "give Serve the listener") {
		t.Error(err)
	}
}

// A secure transport gets the client's configuration, with the name of the server in it, and no
// second TLS.
func TestSecureTransport(t *testing.T) {
	a := transporttest.NewAuthority(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{a.Issue(t, time.Hour, "pigeon.example.org")}, NextProtos: []string{anser.ALPN}})
	if err != nil {
		t.Fatal(err)
	}
	peers := make(chan anser.Peer, 1)
	serve(t, l, map[string]handler{"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		p, _ := anser.PeerFrom(ctx)
		peers <- p
		return in, nil
	}}, serverTLS(t, a, "another"))
	names := make(chan string, 1)
	c := dial(t, "pigeon://pigeon.example.org:443/path", anser.TLS(&tls.Config{RootCAs: a.Pool}), anser.Conns(1), anser.Transport{
		Scheme: "pigeon", Secure: true, Dial: func(ctx context.Context, address string, config *tls.Config) (net.Conn, error) {
			if address != "pigeon.example.org:443/path" {
				return nil, errors.New(address)
			}
			names <- config.ServerName
			return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", l.Addr().String())
		},
	})
	if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
		t.Fatal(out, err)
	}
	if n := <-names; n != "pigeon.example.org" {
		t.Errorf("the name is %q", n)
	}
	if p := <-peers; p.TLS == nil || p.TLS.ServerName != "pigeon.example.org" || p.TLS.NegotiatedProtocol != "anser/1" {
		t.Errorf("%+v", p.TLS)
	}
}

// With tls:// a client needs no option if it trusts the authorities of the system.
func TestTLSScheme(t *testing.T) {
	a := transporttest.NewAuthority(t)
	l := listen(t)
	serve(t, l, map[string]handler{"Echo.Say": echo}, serverTLS(t, a, "127.0.0.1"))
	c := dial(t, "tls://"+l.Addr().String())
	_, err := call(context.Background(), c, "Echo.Say", "hello", anser.WithFailMode(anser.Failfast))
	if e := fault(t, err); e.Outcome != anser.NotSent || !strings.Contains(e.Message, "unknown authority") {
		t.Error(err)
	}
	c = dial(t, "tls://"+l.Addr().String(), anser.TLS(&tls.Config{RootCAs: a.Pool}))
	if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
		t.Error(out, err)
	}
}

// A VerifyConnection function gets the name that the client dialed, also if it is an IP address.
func TestVerifyConnection(t *testing.T) {
	a := transporttest.NewAuthority(t)
	l := listen(t)
	serve(t, l, map[string]handler{"Echo.Say": echo}, serverTLS(t, a, "127.0.0.1"))
	names := make(chan string, 10)
	c := dial(t, l.Addr().String(), anser.TLS(&tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
		names <- s.ServerName
		return nil
	}}))
	if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
		t.Error(out, err)
	}
	if n := <-names; n != "127.0.0.1" {
		t.Errorf("the name is %q", n)
	}
}

func TestAnnounceOfATransport(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		reg := registry.NewMemory()
		defer reg.Close()
		serve(t, scheming{network.Listen("0.0.0.0:443")}, map[string]handler{"Echo.Say": echo}, anser.InsecurePublic(), anser.Announce(reg, registry.Instance{Service: "arith"}))
		time.Sleep(time.Second)
		list, err := registry.List(t.Context(), reg, "arith")
		if err != nil || len(list) != 1 || !strings.HasPrefix(list[0].Address, "pigeon://") || !strings.HasSuffix(list[0].Address, ":443") || strings.Contains(list[0].Address, "0.0.0.0") {
			t.Error(list, err)
		}
	})
}

// scheming is a listener whose address is that of a transport.
type scheming struct{ net.Listener }

func (s scheming) Addr() net.Addr { return pigeonAddr(s.Listener.Addr().String()) }

type pigeonAddr string

func (pigeonAddr) Network() string  { return "pigeon" }
func (a pigeonAddr) String() string { return string(a) }

// Either side closes a connection that has been idle for a while. Running calls keep it, and the
// next call makes another one without the instance having counted as down.
func TestIdleTimeout(t *testing.T) {
	for name, opts := range map[string]struct {
		server []anser.ServerOption
		client []anser.DialOption
	}{
		"server": {server: []anser.ServerOption{anser.IdleTimeout(time.Minute)}},
		"client": {client: []anser.DialOption{anser.IdleTimeout(time.Minute)}},
		"both":   {[]anser.ServerOption{anser.IdleTimeout(time.Minute)}, []anser.DialOption{anser.IdleTimeout(time.Minute)}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo, "Slow.Say": func(_ context.Context, in *[]byte) (*[]byte, error) {
					time.Sleep(3 * time.Minute)
					return in, nil
				}}, opts.server...)
				c := dial(t, "a:1", append(opts.client, anser.Dialer(network.Dial), anser.Conns(1), anser.Timeout(time.Hour))...)
				say := func(method string) {
					t.Helper()
					if out, err := call(context.Background(), c, method, "hello"); out != "hello" || err != nil {
						t.Fatal(out, err)
					}
				}
				for range 5 { // used now and then, it is kept
					say("Echo.Say")
					time.Sleep(50 * time.Second)
				}
				say("Slow.Say")
				if n := s.Stats().Accepted; n != 1 {
					t.Errorf("%d connections were made for calls that are never a minute apart", n)
				}
				time.Sleep(2 * time.Minute)
				if n := s.Stats().Conns; n != 0 {
					t.Errorf("there are %d connections after two minutes without a call", n)
				}
				if in := c.Status().Instances[0]; in.Down || in.Connected {
					t.Errorf("the instance counts as down: %t, as connected: %t", in.Down, in.Connected)
				}
				time.Sleep(10 * time.Minute)
				if n := s.Stats().Accepted; n != 1 {
					t.Errorf("%d connections were made although nobody called", n)
				}
				say("Echo.Say")
				if n := s.Stats().Accepted; n != 2 {
					t.Errorf("%d connections were made", n)
				}
			})
		})
	}
}
