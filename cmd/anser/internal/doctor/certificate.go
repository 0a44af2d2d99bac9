package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

// tlsConfig returns a configuration for examinations, which verifies nothing.
func (p *probe) tlsConfig() *tls.Config {
	config := new(tls.Config)
	if p.config.TLS != nil {
		config = p.config.TLS.Clone()
	}
	config.InsecureSkipVerify, config.MinVersion = true, tls.VersionTLS10
	if config.ServerName == "" {
		config.ServerName = p.endpoint.host
	}
	return config
}

// checkTLS examines the TLS of the server, and reports whether it has any. A certificate that
// cannot be trusted is a finding, and the steps after it do not show credentials.
func (p *probe) checkTLS(ctx context.Context) bool {
	var state tls.ConnectionState
	err := p.timing.step("TLS", func() (err error) {
		state, err = p.shake(ctx, tls.VersionTLS13)
		return err
	})
	if err != nil {
		text, advice := p.tlsFailure(err)
		p.add("tls", Fail, advice, "%s", text)
		if _, other := errors.AsType[tls.RecordHeaderError](err); other && !p.endpoint.secure() {
			p.tls, p.trusted = false, false // go on without, to say what the port is
			return true
		}
		return false
	}
	if state.Version < tls.VersionTLS13 {
		p.add("tls.version", Warn, "clients of Anser want TLS 1.3 unless their configuration sets less: raise the version of the server",
			"the server speaks at most %s", tls.VersionName(state.Version))
	} else {
		p.pass("tls", "%s (%s)", tls.VersionName(state.Version), table.Duration(p.timing.took()))
	}
	if old, err := p.shake(ctx, tls.VersionTLS11); err == nil {
		p.add("tls.version", Warn, "set MinVersion of the server to tls.VersionTLS12 or more", "the server accepts %s, which is broken", tls.VersionName(old.Version))
	}
	c := &certificates{findings: &p.findings, chain: state.PeerCertificates, name: p.tlsConfig().ServerName, now: time.Now()}
	if p.config.TLS != nil {
		c.roots = p.config.TLS.RootCAs
	}
	p.trusted = c.check()
	return true
}

// shake makes a TLS handshake with at most that version.
func (p *probe) shake(ctx context.Context, most uint16) (tls.ConnectionState, error) {
	nc, err := p.dialTo(ctx, p.peer)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer nc.Close()
	config := p.tlsConfig()
	config.MaxVersion = most
	if config.NextProtos = []string{"http/1.1"}; p.endpoint.direct() {
		config.NextProtos = []string{anser.ALPN}
	}
	tc := tls.Client(nc, config)
	err = tc.HandshakeContext(ctx)
	return tc.ConnectionState(), err
}

// tlsFailure says why a TLS handshake failed, and what to do.
func (p *probe) tlsFailure(err error) (text, advice string) {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the port does not speak TLS", "leave --tls and the flags like it out, or give the server anser.TLS"
	}
	switch {
	case isTimeout(err):
		return fmt.Sprintf("the TLS handshake got no answer within %v", p.config.Timeout),
			"the server hangs, or speaks another protocol: try without --tls"
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET):
		return "the server closed the connection during the TLS handshake", "look into the log of the server, or of the proxy in front of it"
	case wantsCertificate(err):
		return "the server requires a certificate of the client", "give one that it takes with --cert and --key"
	case strings.Contains(err.Error(), "no application protocol"):
		return "the server does not offer the protocol " + anser.ALPN + " by ALPN", "a proxy in front of the server ends TLS: let it pass TLS on, or add the protocol to it"
	}
	return "the TLS handshake failed: " + err.Error(), "look into the log of the server"
}

// wantsCertificate reports whether the server ended TLS because of the client's certificate, or
// because it has none.
func wantsCertificate(err error) bool {
	return strings.Contains(err.Error(), "remote error") && strings.Contains(err.Error(), "certificate")
}

// certificates checks a chain of certificates that a server has sent.
type certificates struct {
	*findings
	chain []*x509.Certificate // the server's own comes first
	name  string              // that clients verify
	roots *x509.CertPool      // nil: the system's
	now   time.Time
}

// soon is how long before its end a certificate gets a warning, unless it is a short-lived one.
const soon = 14 * 24 * time.Hour

// check reports whether a client accepts the chain.
func (c *certificates) check() bool {
	if len(c.chain) == 0 {
		c.add("tls.chain", Fail, "give the server a certificate", "the server shows no certificate")
		return false
	}
	dates, name, chain := c.dates(), c.names(), c.trust()
	return dates && name && chain
}

// dates checks the validity of each certificate.
func (c *certificates) dates() bool {
	ok := true
	for i, cert := range c.chain {
		whose := "the certificate"
		if i > 0 {
			whose = "the certificate of the authority " + cert.Subject.CommonName
		}
		left, life := cert.NotAfter.Sub(c.now), cert.NotAfter.Sub(cert.NotBefore)
		day := cert.NotAfter.UTC().Format(time.RFC3339)
		switch {
		case left <= 0:
			ok = false
			c.add("tls.expiry", Fail, "renew it, and reload it in the server", "%s has expired: it was valid until %s, %s ago", whose, day, span(-left))
		case c.now.Before(cert.NotBefore):
			ok = false
			c.add("tls.expiry", Fail, "compare the clock of this machine with that of the authority", "%s is not valid yet, but from %s on", whose, cert.NotBefore.UTC().Format(time.RFC3339))
		case left < min(soon, life/5):
			c.add("tls.expiry", Warn, "renew it, and reload it in the server", "%s expires in %s, at %s", whose, span(left), day)
		case i == 0:
			c.pass("tls.expiry", "%s is valid for %s, until %s", whose, span(left), day)
		}
	}
	return ok
}

// names checks the name of the server.
func (c *certificates) names() bool {
	leaf := c.chain[0]
	if err := leaf.VerifyHostname(c.name); err != nil {
		c.add("tls.name", Fail, "dial one of its names, give one with --server-name, or issue a certificate for this one",
			"the certificate is not for %s: it is for %s", c.name, namesOf(leaf))
		return false
	}
	c.pass("tls.name", "the certificate is for %s", namesOf(leaf))
	return true
}

// namesOf lists the names of a certificate.
func namesOf(cert *x509.Certificate) string {
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	switch {
	case len(names) == 0:
		return fmt.Sprintf("no name at all (its subject is %q)", cert.Subject.CommonName)
	case len(names) > 8:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:8], ", "), len(names)-8)
	}
	return strings.Join(names, ", ")
}

// trust checks the chain up to an authority, as of a time at which the certificate is valid.
func (c *certificates) trust() bool {
	leaf := c.chain[0]
	at := c.now
	if at.After(leaf.NotAfter) {
		at = leaf.NotAfter
	} else if at.Before(leaf.NotBefore) {
		at = leaf.NotBefore
	}
	between := x509.NewCertPool()
	for _, cert := range c.chain[1:] {
		between.AddCert(cert)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: c.roots, Intermediates: between, CurrentTime: at})
	if err == nil {
		c.pass("tls.chain", "the chain is complete: issued by %s", issuer(leaf))
		return true
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return true // dates has said so
	}
	whose := "the system's"
	if c.roots != nil {
		whose = "those of --ca"
	}
	switch _, unknown := errors.AsType[x509.UnknownAuthorityError](err); {
	case unknown && leaf.Subject.String() == leaf.Issuer.String():
		c.add("tls.chain", Fail, "give its file with --ca, or let an authority issue it", "the certificate is issued by itself, which is not one of the authorities to trust (%s)", whose)
	case unknown && len(c.chain) == 1 && !leaf.IsCA:
		c.add("tls.chain", Fail, "give the authority's certificate with --ca; if it is an intermediate one, the server must send it, too",
			"the server sends its own certificate alone, issued by %s, which is not one of the authorities to trust (%s)", issuer(leaf), whose)
	default:
		c.add("tls.chain", Fail, "give the authority's certificate with --ca, or correct the certificate of the server", "the certificate is not trusted (%s): %v", whose, err)
	}
	return false
}

func issuer(cert *x509.Certificate) string {
	if name := cert.Issuer.CommonName; name != "" {
		return name
	}
	return cert.Issuer.String()
}

// span writes a long duration for people.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", int(d/time.Hour))
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", int(d/time.Minute))
	}
	return fmt.Sprintf("%d seconds", int(d/time.Second))
}
