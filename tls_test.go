package anser_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// authority is a certificate authority of one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{cert, key, x509.NewCertPool()}
	a.pool.AddCert(cert)
	return a
}

// issue makes a certificate for the names and addresses.
func (a *authority) issue(t testing.TB, names ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) server(t testing.TB, names ...string) anser.SideOption {
	return anser.TLS(&tls.Config{Certificates: []tls.Certificate{a.issue(t, names...)}})
}

// The client proves the server by the address it dialled, in TLS 1.3.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	peers := make(chan anser.Peer, 1)
	l := listen(t)
	serve(t, l, map[string]handler{"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
		p, _ := anser.PeerFrom(ctx)
		peers <- p
		return in, nil
	}}, a.server(t, "127.0.0.1"))
	c := dial(t, l.Addr().String(), anser.TLS(&tls.Config{RootCAs: a.pool}))
	if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
		t.Fatal(out, err)
	}
	if p := <-peers; p.TLS == nil || p.TLS.Version != tls.VersionTLS13 || p.Addr == nil || p.Local.String() != l.Addr().String() {
		t.Errorf("%+v", p)
	}
}

// Where TLS does not fit, the error says so and what to do, and the call was not sent.
func TestTLSMismatch(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	for name, test := range map[string]struct {
		server []anser.ServerOption
		client []anser.DialOption
		want   string
	}{
		"client without": {[]anser.ServerOption{a.server(t, "127.0.0.1")}, nil, "this port speaks TLS: give the client anser.TLS"},
		"server without": {nil, []anser.DialOption{anser.TLS(&tls.Config{RootCAs: a.pool})}, "first record does not look like a TLS handshake: give the server anser.TLS, or leave the option out here"},
		"other name":     {[]anser.ServerOption{a.server(t, "example.org")}, []anser.DialOption{anser.TLS(&tls.Config{RootCAs: a.pool})}, "127.0.0.1"},
		"other authority": {
			[]anser.ServerOption{a.server(t, "127.0.0.1")},
			[]anser.DialOption{anser.TLS(&tls.Config{RootCAs: other.pool})},
			"certificate signed by unknown authority",
		},
		"old version": {
			[]anser.ServerOption{a.server(t, "127.0.0.1")},
			[]anser.DialOption{anser.TLS(&tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12})},
			"protocol version",
		},
		"no client certificate": {
			[]anser.ServerOption{anser.TLS(&tls.Config{
				Certificates: []tls.Certificate{a.issue(t, "127.0.0.1")}, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert,
			})},
			[]anser.DialOption{anser.TLS(&tls.Config{RootCAs: a.pool})},
			"certificate required",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			s := serve(t, l, map[string]handler{"Echo.Say": echo}, test.server...)
			c := dial(t, l.Addr().String(), test.client...)
			_, err := call(context.Background(), c, "Echo.Say", "hello", anser.Fail(anser.Failfast))
			e := wantFault(t, err, anser.Unavailable, anser.NotSent)
			if !strings.Contains(e.Message, test.want) {
				t.Error(e.Message)
			}
			eventually(t, "the failure is counted", func() bool { return s.Stats().HandshakeFailed > 0 })
			if n := s.Stats().Methods["Echo.Say"].Calls; n != 0 {
				t.Errorf("%d calls ran", n)
			}
		})
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "echo")
	s := anser.NewServer(silent)
	anser.Handle(s, "Echo.Say", echo)
	l, err := s.Listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, l)
	c := dial(t, "unix://"+path)
	if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
		t.Fatal(out, err)
	}
	s.Close()
	eventually(t, "the client knows", func() bool { return !c.Status().Instances[0].Connected })
	_, err = call(context.Background(), c, "Echo.Say", "hello", anser.Fail(anser.Failfast))
	if e := fault(t, err); e.Outcome != anser.NotSent {
		t.Error(err)
	}
}
