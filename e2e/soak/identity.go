package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"time"
)

// identity is the certificate of all servers of a fleet, made for this process.
type identity struct {
	cert  tls.Certificate
	roots *x509.CertPool
}

func newIdentity() (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "soak"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	i := &identity{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, x509.NewCertPool()}
	i.roots.AddCert(cert)
	return i, nil
}

func (i *identity) server() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{i.cert}} }

func (i *identity) client() *tls.Config { return &tls.Config{RootCAs: i.roots} }
