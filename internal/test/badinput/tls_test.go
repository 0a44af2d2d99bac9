package badinput_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/authority"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// certificates are the certificates of the rows about TLS: of a server that requires client
// certificates, of a good client, and of bad ones.
type certificates struct {
	server, client *tls.Config
	foreign        tls.Certificate // of another authority
	expired        tls.Certificate
	notYet         tls.Certificate
}

var mutual = sync.OnceValue(func() *certificates {
	a := authority.New("authority")
	between := func(from, to time.Duration) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(to) }
	}
	return &certificates{
		foreign: authority.New("other").Issue(),
		expired: a.Issue(between(-2*time.Hour, -time.Hour)),
		notYet:  a.Issue(between(time.Hour, 2*time.Hour)),
		server: &tls.Config{
			Certificates: []tls.Certificate{a.Issue()}, ClientCAs: a.Pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
		},
		client: &tls.Config{RootCAs: a.Pool, ServerName: "127.0.0.1", Certificates: []tls.Certificate{a.Issue()}, MinVersion: tls.VersionTLS12},
	}
})

// secureTarget returns a target that requires client certificates.
func secureTarget(t *testing.T) *target {
	return newTarget(t, transport{name: "mtls", address: loopback, tls: true, configs: func() (server, client *tls.Config) {
		c := mutual()
		return c.server, c.client
	}})
}

// turnedAway checks the common expectations of all rows about TLS, after one bad connection.
func (g *target) turnedAway(t *testing.T, before anser.ServerStats) {
	t.Helper()
	g.turnedAwayAll(t, before, 1)
}

// turnedAwayAll is turnedAway after several bad connections.
func (g *target) turnedAwayAll(t *testing.T, before anser.ServerStats, conns int64) {
	t.Helper()
	g.others(t)
	if n := g.bad.Load(); n != 0 {
		t.Errorf("the handler ran %d times", n)
	}
	after := g.Stats()
	for end := time.Now().Add(bound); after.HandshakeFailed != before.HandshakeFailed+conns; after = g.Stats() {
		if time.Now().After(end) {
			t.Fatalf("the counters were %+v and are %+v", before, after)
		}
		time.Sleep(time.Millisecond)
	}
	if after.Panics != 0 {
		t.Errorf("%d panics", after.Panics)
	}
}

// greeting is the first data of a client, with a call.
func greeting() []byte {
	b := wire.AppendMethod(wirepeer.Hello(wire.DefaultSettings()), 1, "Bad.Bytes")
	return append(b, bad(firstBadID)...)
}

// Row 109: a connection without TLS is rejected. Clients of Anser and of HTTP receive the reason.
func TestPlaintextToTLS(t *testing.T) {
	for name, row := range map[string]struct {
		bytes []byte
		told  bool
	}{
		"row109":  {greeting(), true},
		"row109b": {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), true},
		"row109c": {[]byte{0x16, 3, 1, 0xFF, 0xFF, 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held.note(t, 109)
			g := secureTarget(t)
			for manner, write := range manners {
				t.Run(manner, func(t *testing.T) {
					before := g.Stats()
					nc, err := net.Dial("tcp", g.addr.String())
					if err != nil {
						t.Fatal(err)
					}
					defer nc.Close()
					nc.SetDeadline(time.Now().Add(bound))
					write(nc, row.bytes) // the server may have closed already
					nc.(*net.TCPConn).CloseWrite()
					answer, _ := io.ReadAll(nc)
					if got := strings.Contains(strings.ToLower(string(answer)), "this port speaks tls"); got != row.told && manner == "whole" {
						t.Errorf("the answer is %q", answer)
					}
					g.turnedAway(t, before)
				})
			}
		})
	}
}

// Row 110: TLS 1.1 and older is rejected, even if 1.2 is allowed.
func TestOldTLS(t *testing.T) {
	for name, version := range map[string]uint16{"row110": tls.VersionTLS11, "row110b": tls.VersionTLS10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held.note(t, 110)
			g := secureTarget(t)
			before := g.Stats()
			config := mutual().client.Clone()
			config.MinVersion, config.MaxVersion = tls.VersionTLS10, version
			g.refusesTLS(t, config, "protocol version")
			g.turnedAway(t, before)
		})
	}
	t.Run("row110c", func(t *testing.T) {
		held.note(t, 110)
		s := anser.NewServer(silent, anser.TLS(&tls.Config{MinVersion: tls.VersionTLS11}))
		if err := s.Serve(noListener{}); err == nil || !strings.Contains(err.Error(), "set MinVersion to tls.VersionTLS12 or more") {
			t.Errorf("a configuration that allows TLS 1.1: %v", err)
		}
	})
}

type noListener struct{}

func (noListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (noListener) Close() error              { return nil }
func (noListener) Addr() net.Addr            { return &net.TCPAddr{} }

// Row 111: a certificate of another authority, an expired one, one not yet valid, and none.
func TestClientCertificates(t *testing.T) {
	c := mutual()
	for name, row := range map[string]struct {
		certs []tls.Certificate
		want  string
	}{
		"row111":  {[]tls.Certificate{c.foreign}, "unknown certificate authority"},
		"row111b": {[]tls.Certificate{c.expired}, "expired certificate"},
		"row111c": {[]tls.Certificate{c.notYet}, "expired certificate"},
		"row111d": {nil, "certificate required"},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(name+"/"+tls.VersionName(version), func(t *testing.T) {
				t.Parallel()
				held.note(t, 111)
				g := secureTarget(t)
				before := g.Stats()
				config := c.client.Clone()
				config.MaxVersion = version
				// A careful client would not send a certificate that the server does not accept.
				config.Certificates = nil
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if len(row.certs) == 0 {
						return new(tls.Certificate), nil
					}
					return &row.certs[0], nil
				}
				want := row.want
				if version == tls.VersionTLS12 && len(row.certs) == 0 {
					want = "" // there is no alert for that, and implementations differ
				}
				g.refusesTLS(t, config, want)
				g.turnedAway(t, before)
			})
		}
	}
}

// refusesTLS connects with the configuration and checks that the server ends the connection with
// the alert.
func (g *target) refusesTLS(t *testing.T, config *tls.Config, alert string) {
	t.Helper()
	raw, err := net.Dial("tcp", g.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(bound))
	nc := tls.Client(raw, config)
	err = nc.Handshake()
	if err == nil { // in TLS 1.3 the client is done before the server has checked its certificate
		// Nothing is written: the end of a connection with unread input could overtake the alert.
		_, err = nc.Read(make([]byte, 1))
	}
	if err == nil || !strings.Contains(err.Error(), alert) {
		t.Errorf("%v: want %q", err, alert)
	}
}

// Row 112: the client notices that it is the wrong server, and sends nothing.
func TestWrongServer(t *testing.T) {
	for name, row := range map[string]struct {
		host string
		want string
	}{
		"row112":  {"other.example.org", "other.example.org"},
		"row112b": {"127.0.0.2", "127.0.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held.note(t, 112)
			g := secureTarget(t)
			before := g.Stats()
			config := mutual().client.Clone()
			config.ServerName = row.host
			var dialed atomic.Int64 // the client keeps trying until it is closed
			c, err := anser.Dial(g.addr.String(), silent, anser.NoSnapshot(), anser.TLS(config), anser.Conns(1), anser.HandshakeTimeout(bound),
				anser.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
					nc, err := new(net.Dialer).DialContext(ctx, network, address)
					if err == nil {
						dialed.Add(1)
					}
					return nc, err
				}))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = anser.Call[[]byte](context.Background(), c, "Bad.Bytes", new([]byte), anser.WithFailMode(anser.Failfast))
			e, ok := err.(*anser.Error)
			if !ok || e.Outcome != anser.NotSent || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v: want an error that says NotSent and names %s", err, row.want)
			}
			c.Close()
			g.turnedAwayAll(t, before, dialed.Load())
		})
	}
}
