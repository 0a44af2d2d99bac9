package regtest

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"testing"

	"github.com/anser-rpc/anser/internal/authority"
)

// Certificate is valid for 127.0.0.1 and localhost, for servers and clients. Its PEM files exist
// until the end of the test.
type Certificate struct {
	CertFile, KeyFile string
	CAFile            string // of the CA that issued it
	TLS               tls.Certificate
	Pool              *x509.CertPool // of the CA
}

// NewCertificate issues a certificate.
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
