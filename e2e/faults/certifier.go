package main

import (
	"crypto/x509"
	"errors"
	"net"
	"path/filepath"

	"github.com/anser-rpc/anser/internal/authority"
)

// certifier certifies the processes of a row, in files of a folder.
type certifier struct {
	dir string
	by  *authority.Authority
}

func newCertifier(dir string) (*certifier, error) {
	c := &certifier{dir, authority.New("faults")}
	return c, authority.Replace(c.names("").Authority, c.by.PEM())
}

// certify makes an authority, and a certificate for each name, of the numbers 2, 3 and so on.
func (w *world) certify(names ...string) (*certifier, error) {
	dir, err := w.folder("certificates")
	if err != nil {
		return nil, err
	}
	c, err := newCertifier(dir)
	for i, name := range names {
		err = errors.Join(err, c.issue(name, int64(2+i)))
	}
	return c, err
}

// names are the files of a certificate.
func (c *certifier) names(name string) *tlsNames {
	return &tlsNames{filepath.Join(c.dir, name+".pem"), filepath.Join(c.dir, name+".key"), filepath.Join(c.dir, "authority.pem")}
}

// issue issues a certificate with that number for every possible host, and replaces the files of
// the name. A reader between the two sees a pair that does not match, and tries again.
func (c *certifier) issue(name string, number int64) error {
	_, _, err := authority.Write(c.dir, name, c.by.Issue(authority.Named(name), authority.Numbered(number), func(cert *x509.Certificate) {
		cert.DNSNames = []string{"ledger"}
		for i := byte(1); i <= 20; i++ {
			cert.IPAddresses = append(cert.IPAddresses, net.IPv4(198, 18, 0, i))
		}
	}))
	return err
}

// revoke makes a list of revoked certificates, which replaces the one before, and returns the name
// of its file.
func (c *certifier) revoke(edition int64, numbers ...int64) (string, error) {
	file := filepath.Join(c.dir, "revoked.pem")
	return file, authority.Replace(file, c.by.Revoke(edition, numbers...))
}
