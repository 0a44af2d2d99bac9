// Package tlsfiles provides TLS configurations that follow certificate files on disk: when the
// files change, new connections use their new contents, and existing connections continue. If the
// files are invalid, the old certificates stay in use, and the error is in the log and in
// [Files.Stats].
//
//	files, err := tlsfiles.Open(tlsfiles.Certificate("server.pem", "server.key"), tlsfiles.Authorities("ca.pem"))
//	…
//	defer files.Close()
//	s := anser.NewServer(anser.TLS(files.Server()))
//
// Changes are detected by content, which is read every ten seconds, not by file system events:
// those miss the swap of a symbolic link, as in Kubernetes.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/follow"
)

// Option configures [Open].
type Option func(*options)

type pair struct{ cert, key string }

type options struct {
	pairs       []pair
	authorities []string
	poll        time.Duration
	soon        time.Duration
	log         *slog.Logger
	minVersion  uint16
}

// Certificate adds a certificate: the names of the PEM files of its chain, leaf first, and of its
// key. A server with several chooses by the name that the client requests (SNI), and uses the
// first if none matches; a client uses the first that the server accepts.
func Certificate(chain, key string) Option {
	return func(o *options) { o.pairs = append(o.pairs, pair{chain, key}) }
}

// Authorities adds PEM files with the authorities that must have certified the peer. A server with
// them requires a certificate of every client (mutual TLS); a client without them trusts the
// system's roots.
func Authorities(files ...string) Option {
	return func(o *options) { o.authorities = append(o.authorities, files...) }
}

// Poll sets the interval at which the files are read; the default is 10 s.
func Poll(every time.Duration) Option { return func(o *options) { o.poll = every } }

// ExpiresSoon sets how long before a certificate expires warnings begin, one a day; the default is
// 14 days.
func ExpiresSoon(before time.Duration) Option { return func(o *options) { o.soon = before } }

// Logger sets the logger for changes and errors; the default is slog.Default(). Keys are never
// logged.
func Logger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// TLS12 allows TLS 1.2; by default the minimum is TLS 1.3.
func TLS12() Option { return func(o *options) { o.minVersion = tls.VersionTLS12 } }

// Files follows certificate files. All methods are safe for concurrent use.
type Files struct {
	o       options
	client  *tls.Config
	now     atomic.Pointer[content]
	looking sync.Mutex // held while files are read

	mu      sync.Mutex // guards the fields below
	stats   Stats
	refused follow.Digest        // invalid content, which is logged once
	warned  map[string]time.Time // time of the last warning about a certificate, by its serial number

	poller *follow.Poller
}

// Open reads the files and follows them until Close. It fails if they are not usable now.
func Open(opts ...Option) (*Files, error) {
	f := &Files{
		o:      options{poll: 10 * time.Second, soon: 14 * 24 * time.Hour, log: slog.Default(), minVersion: tls.VersionTLS13},
		warned: make(map[string]time.Time),
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("tlsfiles.Open: an option is nil")
		}
		opt(&f.o)
	}
	switch {
	case len(f.o.pairs)+len(f.o.authorities) == 0:
		return nil, errors.New("tlsfiles: no files: give Open a Certificate, Authorities or both")
	case f.o.poll <= 0:
		return nil, fmt.Errorf("tlsfiles: Poll(%v): want a time above 0", f.o.poll)
	case f.o.soon < 0:
		return nil, fmt.Errorf("tlsfiles: ExpiresSoon(%v): want at least 0", f.o.soon)
	case f.o.log == nil:
		return nil, errors.New("tlsfiles: the logger is nil: leave the option out, or give it slog.New(slog.DiscardHandler)")
	}
	if err := f.Reload(); err != nil {
		return nil, err
	}
	f.client = f.newClient()
	f.poller = follow.Every(f.o.poll, func() { f.Reload() }) // it logs errors
	return f, nil
}

// Close stops following the files. The configurations keep using the last contents.
func (f *Files) Close() error {
	f.poller.Close()
	return nil
}

// Server returns a configuration for a server. Connections negotiate one of the given protocols
// (ALPN), by default [anser.ALPN]: for a net/http server they are "h2" and "http/1.1".
func (f *Files) Server(protocols ...string) *tls.Config {
	if len(protocols) == 0 {
		protocols = []string{anser.ALPN}
	}
	demands := tls.NoClientCert
	if len(f.o.authorities) > 0 {
		demands = tls.RequireAndVerifyClientCert // for code that checks it; enforced by the callback below
	}
	return &tls.Config{
		MinVersion: f.o.minVersion,
		NextProtos: protocols,
		ClientAuth: demands,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c := f.now.Load()
			if len(c.certificates) == 0 {
				return nil, errors.New("tlsfiles: a server needs a certificate: give Open a Certificate")
			}
			config := &tls.Config{
				MinVersion: f.o.minVersion, NextProtos: protocols,
				Certificates: c.certificates,
			}
			if c.authorities != nil {
				config.ClientCAs, config.ClientAuth = c.authorities, tls.RequireAndVerifyClientCert
				config.VerifyConnection = func(state tls.ConnectionState) error {
					if !state.DidResume {
						return nil
					}
					// The session may have begun with other files.
					return f.verify(&state, "", x509.ExtKeyUsageClientAuth)
				}
			}
			return config, nil
		},
	}
}

// Client returns the configuration for clients, which is the same each time, so that the clients
// of a process share their connections. Outside of package anser it must have a ServerName that is
// a DNS name: the verification does not know IP addresses.
func (f *Files) Client() *tls.Config { return f.client }

func (f *Files) newClient() *tls.Config {
	config := &tls.Config{MinVersion: f.o.minVersion, NextProtos: []string{anser.ALPN}}
	if len(f.o.pairs) == 0 {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	} else {
		// No sessions: a resumed one has the certificate from its beginning, and after a change
		// the server would still use the client's old identity.
		config.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			list := f.now.Load().certificates
			for i := range list {
				if r.SupportsCertificate(&list[i]) == nil {
					return &list[i], nil
				}
			}
			return new(tls.Certificate), nil
		}
	}
	if len(f.o.authorities) > 0 {
		// The verification by crypto/tls uses fixed authorities.
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(state tls.ConnectionState) error {
			if state.ServerName == "" {
				return errors.New("tlsfiles: the name of the server is unknown: set ServerName to a name")
			}
			return f.verify(&state, state.ServerName, x509.ExtKeyUsageServerAuth)
		}
	}
	return config
}

// verify verifies the peer's certificate with the present authorities. If name is not empty, the
// certificate must be valid for it.
func (f *Files) verify(state *tls.ConnectionState, name string, use x509.ExtKeyUsage) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("tlsfiles: the other side has no certificate")
	}
	o := x509.VerifyOptions{
		Roots: f.now.Load().authorities, DNSName: name, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{use},
	}
	for _, c := range state.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	if _, err := state.PeerCertificates[0].Verify(o); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
	}
	return nil
}
