package doctor_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/doctor"
	"github.com/anser-rpc/anser/internal/authority"
)

// secured returns the address of a server with a certificate, and a configuration that trusts its
// authority.
func secured(t *testing.T, changes ...func(*x509.Certificate)) (string, *doctor.Config) {
	t.Helper()
	a := authority.New("the authority")
	config := &tls.Config{RootCAs: a.Pool}
	at := serve(t, anser.TLS(&tls.Config{Certificates: []tls.Certificate{a.Issue(changes...)}}))
	return at, &doctor.Config{Timeout: time.Minute, TLS: config, Dial: []anser.DialOption{anser.TLS(config)}}
}

func valid(from, to time.Duration) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(to) }
}

func TestCertificates(t *testing.T) {
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		change func(*x509.Certificate)
		check  string
		status doctor.Status
		parts  []string
	}{
		"good":          {valid(-day, 100*day), "tls.expiry", doctor.Pass, []string{"valid for 99 days"}},
		"expired":       {valid(-10*day, -3*day), "tls.expiry", doctor.Fail, []string{"has expired", "3 days ago", "renew it"}},
		"not yet valid": {valid(day, 10*day), "tls.expiry", doctor.Fail, []string{"is not valid yet", "compare the clock"}},
		"ends soon":     {valid(-80*day, 5*day), "tls.expiry", doctor.Warn, []string{"expires in 4 days"}},
		"short-lived":   {valid(-10*time.Minute, 50*time.Minute), "tls.expiry", doctor.Pass, []string{"49 minutes"}},
		"other name": {
			func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"arith.example.org"} },
			"tls.name", doctor.Fail,
			[]string{"not for 127.0.0.1: it is for arith.example.org", "--server-name"},
		},
		"no name":  {func(c *x509.Certificate) { c.IPAddresses = nil }, "tls.name", doctor.Fail, []string{"no name at all"}},
		"a client": {func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, "tls.chain", doctor.Fail, []string{"is not trusted"}},
	} {
		t.Run(name, func(t *testing.T) {
			at, config := secured(t, test.change)
			g := examine(t, config, at)
			expect(t, g, test.check, test.status, test.parts...)
			if test.status == doctor.Fail {
				expect(t, g, "handshake", doctor.Pass, "speaks Anser") // it is examined all the same
			} else {
				expect(t, g, "description", doctor.Pass, "describes 2 methods")
				without(t, g, doctor.Fail)
			}
		})
	}
}

func TestServerName(t *testing.T) {
	at, config := secured(t, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"arith.example.org"} })
	config.TLS = config.TLS.Clone()
	config.TLS.ServerName = "arith.example.org"
	config.Dial = []anser.DialOption{anser.TLS(config.TLS)}
	g := examine(t, config, at)
	expect(t, g, "tls.name", doctor.Pass, "arith.example.org")
	without(t, g, doctor.Fail)
}

func TestAuthorityThatIsNotTrusted(t *testing.T) {
	at, _ := secured(t)
	config := &tls.Config{RootCAs: authority.New("another one").Pool}
	g := examine(t, &doctor.Config{Timeout: time.Minute, TLS: config, Dial: []anser.DialOption{anser.TLS(config)}}, at)
	expect(t, g, "tls.chain", doctor.Fail, "issued by the authority", "those of --ca")
	g = examine(t, patient, "tls://"+at)
	expect(t, g, "tls.chain", doctor.Fail, "the system's")

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	own := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "me"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, own, own, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	at = serve(t, anser.TLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}))
	g = examine(t, patient, "tls://"+at)
	expect(t, g, "tls.chain", doctor.Fail, "issued by itself", "--ca")
}

func TestVersionsOfTLS(t *testing.T) {
	a := authority.New("the authority")
	config := &tls.Config{RootCAs: a.Pool, MinVersion: tls.VersionTLS12}
	with := &doctor.Config{Timeout: time.Minute, TLS: config, Dial: []anser.DialOption{anser.TLS(config)}}
	twelve := serve(t, anser.TLS(&tls.Config{Certificates: []tls.Certificate{a.Issue()}, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}))
	g := examine(t, with, twelve)
	expect(t, g, "tls.version", doctor.Warn, "at most TLS 1.2")
	expect(t, g, "description", doctor.Pass, "describes")

	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{a.Issue()}, MinVersion: tls.VersionTLS10})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			nc.(*tls.Conn).HandshakeContext(t.Context())
			nc.Close()
		}
	}()
	defer func() { l.Close(); <-done }()
	g = examine(t, with, l.Addr().String())
	expect(t, g, "tls.version", doctor.Warn, "accepts TLS 1.1")
	expect(t, g, "handshake", doctor.Fail, "closed the connection")
}

func TestTLSOnOneSide(t *testing.T) {
	at, config := secured(t)
	g := examine(t, patient, at) // without TLS
	expect(t, g, "tls", doctor.Fail, "the port speaks TLS", "use --tls")
	expect(t, g, "tls.chain", doctor.Fail, "not one of the authorities to trust") // goes on with the certificate

	g = examine(t, config, serve(t)) // with TLS
	expect(t, g, "tls", doctor.Fail, "does not speak TLS", "leave --tls")
	expect(t, g, "handshake", doctor.Pass, "speaks Anser")

	other, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{authority.New("x").Issue()}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := other.Accept()
			if err != nil {
				return
			}
			nc.(*tls.Conn).HandshakeContext(t.Context())
			nc.Close()
		}
	}()
	defer func() { other.Close(); <-done }()
	g = examine(t, patient, other.Addr().String())
	expect(t, g, "tls", doctor.Fail, "the port speaks TLS")
	expect(t, g, "tls", doctor.Fail, "does not offer the protocol "+anser.ALPN)
}
