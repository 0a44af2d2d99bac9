package main

import (
	"crypto/tls"
	"crypto/x509"
	"time"

	"github.com/anser-rpc/anser/internal/authority"
)

// identity is the certificate of all servers of a fleet, made for this process.
type identity struct {
	cert  tls.Certificate
	roots *x509.CertPool
}

func newIdentity() *identity {
	a := authority.New("soak")
	return &identity{a.Issue(func(c *x509.Certificate) { c.NotAfter = time.Now().AddDate(1, 0, 0) }), a.Pool}
}

func (i *identity) server() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{i.cert}} }

func (i *identity) client() *tls.Config { return &tls.Config{RootCAs: i.roots} }
