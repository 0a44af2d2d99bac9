// Package tlsfiles makes configurations of TLS that follow certificate files on disk: when the files
// change, new connections use what is in them, and those that stand go on. Files that cannot be used
// leave the old certificates in place, and the log and [Files.Stats] say so.
//
//	files, err := tlsfiles.Open(tlsfiles.Certificate("server.pem", "server.key"), tlsfiles.Authorities("ca.pem"))
//	…
//	defer files.Close()
//	s := anser.NewServer(anser.TLS(files.Server()))
//
// Files are found changed by what is in them, which is read every ten seconds, and not by events of the file
// system, which miss the swap of a symbolic link, as Kubernetes makes it.
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

// Certificate adds a certificate: the names of the PEM files of its chain, leaf first, and of its key. A
// server with several chooses by the name that the client asks for (SNI), and takes the first where none fits;
// a client takes the first that the server accepts.
func Certificate(chain, key string) Option {
	return func(o *options) { o.pairs = append(o.pairs, pair{chain, key}) }
}

// Authorities adds PEM files with the authorities that the other side must be certified by. A server
// with them demands a certificate from every client (mutual TLS); a client without them trusts those of
// the system.
func Authorities(files ...string) Option {
	return func(o *options) { o.authorities = append(o.authorities, files...) }
}

// Poll sets how often the files are read; the default is 10 s.
func Poll(every time.Duration) Option { return func(o *options) { o.poll = every } }

// ExpiresSoon sets how long before the end of a certificate warnings begin, one a day; the default is
// 14 days.
func ExpiresSoon(before time.Duration) Option { return func(o *options) { o.soon = before } }

// Logger sets where changes and mistakes are logged; the default is slog.Default(). Keys are never logged.
func Logger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// TLS12 allows TLS 1.2; without it TLS 1.3 is the least.
func TLS12() Option { return func(o *options) { o.minVersion = tls.VersionTLS12 } }

// Files follows certificate files. All methods are safe for concurrent use.
type Files struct {
	o       options
	client  *tls.Config
	now     atomic.Pointer[content]
	looking sync.Mutex // held while files are read

	mu      sync.Mutex // guards what follows
	stats   Stats
	refused follow.Digest        // the content that could not be used, which is logged once
	warned  map[string]time.Time // when the end of a certificate was last warned of, by its serial number

	poller *follow.Poller
}

// Open reads the files and follows them until Close. It fails if they cannot be used now.
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
	f.poller = follow.Every(f.o.poll, func() { f.Reload() }) // it logs what is wrong
	return f, nil
}

// Close ends the following of the files. The configurations go on with what was read last.
func (f *Files) Close() error {
	f.poller.Close()
	return nil
}

// Server returns a configuration for a server. Connections say one of the protocols (ALPN) given, or
// [anser.ALPN] if there is none: for a server of net/http they are "h2" and "http/1.1".
func (f *Files) Server(protocols ...string) *tls.Config {
	if len(protocols) == 0 {
		protocols = []string{anser.ALPN}
	}
	demands := tls.NoClientCert
	if len(f.o.authorities) > 0 {
		demands = tls.RequireAndVerifyClientCert // for who wants to know; it holds by what follows
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
					// The session began under other files perhaps.
					return f.verify(&state, "", x509.ExtKeyUsageClientAuth)
				}
			}
			return config, nil
		},
	}
}

// Client returns the configuration for clients, which is the same each time, so that the clients of a
// process share their connections. Outside of package anser it needs a ServerName that is a name: an
// IP address is not known where certificates are verified.
func (f *Files) Client() *tls.Config { return f.client }

func (f *Files) newClient() *tls.Config {
	config := &tls.Config{MinVersion: f.o.minVersion, NextProtos: []string{anser.ALPN}}
	if len(f.o.pairs) == 0 {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	} else {
		// No sessions: a resumed one has the certificate from when it began, and after a change the server
		// would go on taking the client for who it was.
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
		// What crypto/tls verifies by itself is against authorities that cannot change.
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(state tls.ConnectionState) error {
			if state.ServerName == "" {
				return errors.New("tlsfiles: it is not known whose certificate to expect: set ServerName to a name")
			}
			return f.verify(&state, state.ServerName, x509.ExtKeyUsageServerAuth)
		}
	}
	return config
}

// verify checks the other side's certificate against the authorities as they are now. With a name the
// certificate must be for it.
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
