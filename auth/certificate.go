package auth

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
)

// Certificates authenticates clients by the certificates verified by mutual TLS. All methods are
// safe for concurrent use.
type Certificates struct {
	now  atomic.Pointer[revocations]
	file *follower
}

// revocations holds the lists in use; it is immutable.
type revocations struct{ lists []*revocationList }

type revocationList struct {
	file    string
	issuer  []byte // its name
	list    *x509.RevocationList
	serials map[string]bool
	issuers sync.Map // results of signedBy, by the certificate of the issuer
}

// signedBy returns an error if the list is not signed by the issuer. A signature is verified once
// per issuer: after a change of the lists, all connections are checked within a second.
func (l *revocationList) signedBy(issuer *x509.Certificate) error {
	key := string(issuer.Raw)
	if known, ok := l.issuers.Load(key); ok {
		err, _ := known.(error)
		return err
	}
	err := l.list.CheckSignatureFrom(issuer)
	l.issuers.Store(key, err) // nil results, too
	return err
}

// MutualTLS returns an authenticator that names a client by its certificate: by the first URI
// among its subject alternative names (as in SPIFFE), otherwise the first DNS name, otherwise its
// common name. Its organizations are the groups, its serial number is the attribute "serial". The
// TLS configuration of the server must require certificates, or at least verify them if they are
// given; tlsfiles.Authorities does.
//
// Shortly before a certificate expires, the server drains its connections, as for a restart, and
// the client opens new ones with its newer certificate.
func MutualTLS() *Certificates {
	c := new(Certificates)
	c.now.Store(new(revocations))
	return c
}

// OpenMutualTLS is MutualTLS with certificate revocation lists (RFC 5280), in PEM or DER files
// that are followed until Close. A client is rejected if a list contains its certificate or that
// of an authority above it, and its connections are closed within seconds after the file has
// changed. A list applies to the certificates of its issuer, which must have signed it: otherwise
// all of them are rejected. Without a list of an issuer, all of its certificates are valid; a list
// whose next update is overdue is still used, and logged.
func OpenMutualTLS(files []string, opts ...FollowOption) (*Certificates, error) {
	c := new(Certificates)
	f, err := open(files, opts, func(contents [][]byte) error { return c.load(files, contents) })
	if err != nil {
		return nil, err
	}
	for _, l := range c.now.Load().lists {
		if due := l.list.NextUpdate; !due.IsZero() && time.Now().After(due) {
			f.o.log.Warn("auth: the revocation list should have been renewed", "file", l.file, "since", due)
		}
	}
	c.file = f
	return c, nil
}

// load replaces the lists by those in files.
func (c *Certificates) load(files []string, contents [][]byte) error {
	next := new(revocations)
	for i, b := range contents {
		lists, err := parseLists(files[i], b)
		if err != nil {
			return err
		}
		next.lists = append(next.lists, lists...)
	}
	c.now.Store(next)
	return nil
}

// parseLists parses the lists in a file, one in DER or several in PEM.
func parseLists(file string, b []byte) ([]*revocationList, error) {
	var ders [][]byte
	for rest := b; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "X509 CRL" {
			ders = append(ders, block.Bytes)
		}
	}
	if len(ders) == 0 {
		ders = [][]byte{b}
	}
	var out []*revocationList
	for _, der := range ders {
		list, err := x509.ParseRevocationList(der)
		if err != nil {
			return nil, fmt.Errorf("auth: %s is not a certificate revocation list: %w", file, err)
		}
		l := &revocationList{file: file, issuer: list.RawIssuer, list: list, serials: make(map[string]bool)}
		for _, e := range list.RevokedCertificateEntries {
			if e.ReasonCode != removeFromCRL {
				l.serials[string(e.SerialNumber.Bytes())] = true
			}
		}
		out = append(out, l)
	}
	return out, nil
}

const removeFromCRL = 8 // RFC 5280 §5.3.1: the certificate is valid again

// Close stops following the files. The lists stay in force.
func (c *Certificates) Close() error { return c.file.close() }

// Authenticate implements [anser.Authenticator].
func (c *Certificates) Authenticate(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
	if l.Scheme != anser.SchemeTLS || l.Peer.TLS == nil || len(l.Peer.TLS.VerifiedChains) == 0 {
		return nil, anser.ErrOtherScheme
	}
	chains := l.Peer.TLS.VerifiedChains
	leaf := chains[0][0]
	subject := subjectOf(leaf)
	if subject == "" {
		return nil, errors.New("auth: the certificate has no name: no URI, no DNS name and no common name")
	}
	r := c.now.Load()
	if err := r.check(chains); err != nil {
		return nil, err
	}
	id := &anser.Identity{
		Subject: subject, Groups: leaf.Subject.Organization, Expires: leaf.NotAfter,
		Attributes: map[string]string{"serial": leaf.SerialNumber.Text(16)},
	}
	if c.file != nil {
		id.Revoked = c.revoked(r, chains)
	}
	return id, nil
}

func subjectOf(cert *x509.Certificate) string {
	switch {
	case len(cert.URIs) > 0:
		return cert.URIs[0].String()
	case len(cert.DNSNames) > 0:
		return cert.DNSNames[0]
	}
	return cert.Subject.CommonName
}

// revoked returns a function that reports whether the chains were revoked after seen.
func (c *Certificates) revoked(seen *revocations, chains [][]*x509.Certificate) func() bool {
	var last atomic.Pointer[revocations] // the latest lists in which they were valid
	last.Store(seen)
	return func() bool {
		r := c.now.Load()
		if r == last.Load() {
			return false
		}
		if r.check(chains) != nil {
			return true
		}
		last.Store(r)
		return false
	}
}

// check returns an error if none of the chains is valid.
func (r *revocations) check(chains [][]*x509.Certificate) (err error) {
	for _, chain := range chains {
		if err = r.checkChain(chain); err == nil {
			return nil
		}
	}
	return err
}

func (r *revocations) checkChain(chain []*x509.Certificate) error {
	for i, cert := range chain[:len(chain)-1] { // the last one is a trusted root
		issuer := chain[i+1]
		for _, l := range r.lists {
			switch {
			case !bytes.Equal(l.issuer, cert.RawIssuer):
			case l.signedBy(issuer) != nil:
				return fmt.Errorf("auth: the revocation list %s names the issuer %s, which has not signed it", l.file, issuer.Subject)
			case l.serials[string(cert.SerialNumber.Bytes())]:
				return fmt.Errorf("auth: the certificate with the serial number %s is revoked", cert.SerialNumber.Text(16))
			}
		}
	}
	return nil
}
