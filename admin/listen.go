package admin

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/anser-rpc/anser"
)

// ErrClosed is the error of ListenAndServe and Serve after Close.
var ErrClosed = errors.New("the admin page is closed")

// ListenAndServe serves the page at address, "host:port", until Close. It always returns an error.
// On any address other than loopback it requires authentication, which is [Token] or [Authorize],
// and TLS, unless [InsecurePublic] is given.
func (p *Page) ListenAndServe(address string) error {
	l, err := p.Listen(address)
	if err != nil {
		return err
	}
	return p.Serve(l)
}

// Listen returns a listener for Serve, with the checks of ListenAndServe.
func (p *Page) Listen(address string) (net.Listener, error) {
	if !p.made() {
		return nil, errNotMade
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return nil, fmt.Errorf("the admin page on %q: the address has no port: use host:port", address)
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		if err := p.mayBePublic(address, false); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the admin page: listen on %s: %w", address, err)
	}
	return l, nil
}

// mayBePublic returns why the page must not be served where other machines reach it. encrypted says
// that the listener has TLS of its own.
func (p *Page) mayBePublic(address string, encrypted bool) error {
	if len(p.o.tokens)+len(p.o.authorize) == 0 {
		return fmt.Errorf("the admin page on %q: the address is reachable from other machines and there is no authentication: use a loopback address, or admin.Token or admin.Authorize", address)
	}
	if p.o.tls == nil && !encrypted && !p.o.insecure {
		return fmt.Errorf("the admin page on %q: the address is reachable from other machines and there is no TLS: use a loopback address, admin.TLS, or admin.InsecurePublic", address)
	}
	return nil
}

// Serve serves the page on l, which it finally closes, until Close. It always returns an error. The
// checks of ListenAndServe apply.
func (p *Page) Serve(l net.Listener) error {
	if l == nil {
		return errors.New("the admin page: the listener is nil")
	}
	if !p.made() {
		l.Close()
		return errNotMade
	}
	if at := anser.ProtectionOf(l); !at.Local {
		if err := p.mayBePublic(l.Addr().String(), at.Encrypted); err != nil {
			l.Close()
			return err
		}
	}
	if p.o.tls != nil {
		config := p.o.tls.Clone()
		if len(config.NextProtos) == 0 {
			config.NextProtos = []string{"h2", "http/1.1"}
		}
		l = tls.NewListener(l, config)
	}
	s := &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: log.New(discard{}, "", 0),
	}
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		l.Close()
		return ErrClosed
	}
	p.servers[s] = struct{}{}
	p.mu.Unlock()
	err := s.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return ErrClosed
	}
	p.mu.Lock()
	delete(p.servers, s)
	p.mu.Unlock()
	return fmt.Errorf("the admin page: %w", err)
}

// discard drops what net/http logs about single connections.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
