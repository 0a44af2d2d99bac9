package transporttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority certifies the servers and clients of a test.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	Pool *x509.CertPool // of this authority
}

// NewAuthority returns an authority that nobody else trusts.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "authority of a test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authority{cert: cert, key: key, Pool: x509.NewCertPool()}
	a.Pool.AddCert(cert)
	return a
}

// Issue makes a certificate for names and IP addresses, good for a server and for a client; the first is
// its common name too. It is valid from an hour ago for so long from now.
func (a *Authority) Issue(t testing.TB, valid time.Duration, names ...string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: names[0]},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid),
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

// Server returns the configuration of a server at 127.0.0.1, which with mutual demands certificates of
// this authority.
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

// Write puts a certificate and its key into the PEM files dir/name.pem and dir/name.key, each in one
// step, and returns their names.
func Write(t testing.TB, dir, name string, cert tls.Certificate) (chain, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	chain, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	writePEM(t, key, "PRIVATE KEY", der)
	writePEM(t, chain, "CERTIFICATE", cert.Certificate[0])
	return chain, key
}

// Write puts the authority's own certificate into the PEM file dir/name.pem and returns its name.
func (a *Authority) Write(t testing.TB, dir, name string) string {
	t.Helper()
	file := filepath.Join(dir, name+".pem")
	writePEM(t, file, "CERTIFICATE", a.cert.Raw)
	return file
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
