package regtest

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"testing"

	"github.com/anser-rpc/anser/internal/authority"
)

// Certificate is one for 127.0.0.1 and localhost, for servers and clients. The files, in PEM, are there for as long as
// the test lasts.
type Certificate struct {
	CertFile, KeyFile string
	CAFile            string // of the authority that made it
	TLS               tls.Certificate
	Pool              *x509.CertPool // of the authority
}

// NewCertificate makes a certificate.
func NewCertificate(t testing.TB) *Certificate {
	t.Helper()
	a, dir := authority.New("registry"), t.TempDir()
	c := &Certificate{
		CAFile: filepath.Join(dir, "authority.pem"), Pool: a.Pool,
		TLS: a.Issue(func(c *x509.Certificate) { c.DNSNames = []string{"localhost"} }),
	}
	if err := authority.Replace(c.CAFile, a.PEM()); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.CertFile, c.KeyFile, err = authority.Write(dir, "server", c.TLS); err != nil {
		t.Fatal(err)
	}
	return c
}
