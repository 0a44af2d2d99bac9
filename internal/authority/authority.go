// Package authority is a CA for the servers and clients of tests and of programs that measure.
package authority

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
	"time"
)

// Authority is a CA that only its users trust. Its methods are safe for concurrent use.
type Authority struct {
	Pool *x509.CertPool // of its certificate; must not be modified

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New returns a CA with that name.
func New(name string) *Authority {
	key, der := certificate(nil, nil, &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, SubjectKeyId: []byte(name),
	})
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err) // the certificate has just been created
	}
	a := &Authority{x509.NewCertPool(), cert, key}
	a.Pool.AddCert(cert)
	return a
}

// Issue issues a certificate for a server at 127.0.0.1 or for a client, valid from an hour ago
// until in an hour, as modified by changes. It panics if the result is invalid.
func (a *Authority) Issue(changes ...func(*x509.Certificate)) tls.Certificate {
	template := &x509.Certificate{
		SerialNumber: serial(), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, change := range changes {
		change(template)
	}
	key, der := certificate(a.cert, a.key, template)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Named sets the common name of a certificate.
func Named(name string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.Subject.CommonName = name }
}

// Numbered sets the serial number of a certificate, by which it can be revoked.
func Numbered(serial int64) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.SerialNumber = big.NewInt(serial) }
}

// Revoke returns a list of revoked certificates (CRL, in PEM) with that number.
func (a *Authority) Revoke(edition int64, serials ...int64) []byte {
	list := &x509.RevocationList{Number: big.NewInt(edition), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour)}
	for _, n := range serials {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(n), RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	if err != nil {
		panic(err) // no part of it comes from outside
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

// PEM returns the authority's own certificate.
func (a *Authority) PEM() []byte { return chain(a.cert.Raw) }

// Write writes a certificate and its key into the PEM files dir/name.pem and dir/name.key, and
// returns their names. Each file is replaced atomically; a reader in between sees a pair that does
// not match.
func Write(dir, name string, cert tls.Certificate) (chainFile, keyFile string, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return "", "", err
	}
	chainFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	if err := Replace(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})); err != nil {
		return "", "", err
	}
	return chainFile, keyFile, Replace(chainFile, chain(cert.Certificate[0]))
}

// Replace replaces a file atomically.
func Replace(file string, content []byte) error {
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func chain(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}) }

// certificate creates a certificate signed by the parent, or self-signed if there is none.
func certificate(parent *x509.Certificate, by *ecdsa.PrivateKey, template *x509.Certificate) (key *ecdsa.PrivateKey, der []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // there is always randomness
	}
	if parent == nil {
		parent, by = template, key
	}
	der, err = x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		panic(err)
	}
	return key, der
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		panic(err)
	}
	return n
}
