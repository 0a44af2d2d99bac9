package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority certifies the processes of a row.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes one that nobody else trusts, whose files are in the folder.
func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "faults"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	a := &authority{dir: dir, key: key}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return a, a.write(a.names("").Authority, "CERTIFICATE", der)
}

// certify makes an authority, and a certificate for each name, of the numbers 2, 3 and so on.
func (w *world) certify(names ...string) (*authority, error) {
	dir, err := w.folder("certificates")
	if err != nil {
		return nil, err
	}
	a, err := newAuthority(dir)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if err := a.issue(name, int64(2+i)); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// names are the files of a certificate.
func (a *authority) names(name string) *tlsNames {
	return &tlsNames{filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key"), filepath.Join(a.dir, "authority.pem")}
}

// issue makes a certificate of that number for every host that there may be, and replaces the files of the name.
// Each file changes in one step; who reads between the two finds a pair that does not fit, and tries again.
func (a *authority) issue(name string, number int64) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"ledger"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for i := byte(1); i <= 20; i++ {
		template.IPAddresses = append(template.IPAddresses, net.IPv4(198, 18, 0, i))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	names := a.names(name)
	return errors.Join(a.write(names.Key, "PRIVATE KEY", pkcs8), a.write(names.Chain, "CERTIFICATE", der))
}

// revoke makes a list of revoked certificates, which replaces the one before, and returns the name of its file.
func (a *authority) revoke(edition int64, numbers ...int64) (string, error) {
	list := &x509.RevocationList{Number: big.NewInt(edition), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour)}
	for _, n := range numbers {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(n), RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	if err != nil {
		return "", err
	}
	file := filepath.Join(a.dir, "revoked.pem")
	return file, a.write(file, "X509 CRL", der)
}

func (a *authority) write(file, kind string, der []byte) error {
	if err := os.WriteFile(file+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("replace a certificate: %w", err)
	}
	return nil
}
