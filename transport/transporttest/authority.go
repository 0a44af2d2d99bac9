package transporttest

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/authority"
)

// Authority is a CA for the servers and clients of a test.
type Authority struct {
	Pool *x509.CertPool // of this authority
	by   *authority.Authority
}

// NewAuthority returns a CA that only the test trusts.
func NewAuthority(testing.TB) *Authority {
	a := authority.New("authority of a test")
	return &Authority{a.Pool, a}
}

// Issue issues a certificate for names and IP addresses, for servers and clients; the first is
// also its common name. It is valid from an hour ago until valid from now.
func (a *Authority) Issue(_ testing.TB, valid time.Duration, names ...string) tls.Certificate {
	return a.by.Issue(authority.Named(names[0]), func(c *x509.Certificate) {
		c.NotAfter, c.IPAddresses = time.Now().Add(valid), nil
		for _, n := range names {
			if ip := net.ParseIP(n); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, n)
			}
		}
	})
}

// Server returns the configuration of a server at 127.0.0.1; if mutual is set, it requires
// certificates of this authority.
func (a *Authority) Server(t testing.TB, mutual bool) *tls.Config {
	t.Helper()
	config := &tls.Config{Certificates: []tls.Certificate{a.Issue(t, time.Hour, "127.0.0.1")}, MinVersion: tls.VersionTLS13}
	if mutual {
		config.ClientCAs, config.ClientAuth = a.Pool, tls.RequireAndVerifyClientCert
	}
	return config
}

// Client returns the configuration of a client that trusts this authority, with a certificate.
func (a *Authority) Client(t testing.TB) *tls.Config {
	t.Helper()
	return &tls.Config{RootCAs: a.Pool, Certificates: []tls.Certificate{a.Issue(t, time.Hour, "client")}, MinVersion: tls.VersionTLS13}
}

// Write writes a certificate and its key into the PEM files dir/name.pem and dir/name.key, each
// atomically, and returns their names.
func Write(t testing.TB, dir, name string, cert tls.Certificate) (chain, key string) {
	t.Helper()
	chain, key, err := authority.Write(dir, name, cert)
	if err != nil {
		t.Fatal(err)
	}
	return chain, key
}

// Write writes the authority's own certificate into the PEM file dir/name.pem and returns its
// name.
func (a *Authority) Write(t testing.TB, dir, name string) string {
	t.Helper()
	file := filepath.Join(dir, name+".pem")
	if err := authority.Replace(file, a.by.PEM()); err != nil {
		t.Fatal(err)
	}
	return file
}
