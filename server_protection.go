package anser

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"reflect"

	"github.com/anser-rpc/anser/internal/accept"
	"github.com/anser-rpc/anser/wire"
)

// Protection describes how the connections of a listener are protected before a server sees them.
// Listeners of transports state it with a method
//
//	Protection() anser.Protection
//
// and [Server.Serve] decides by it, and by the listener's address, whether the server may serve
// without the option [InsecurePublic]. The zero value states nothing.
type Protection struct {
	// Local means that only processes on this machine can connect, whatever the address is.
	Local bool
	// Encrypted means that connections are encrypted, cannot be modified on the network path, and
	// that the server has been authenticated, as with TLS.
	Encrypted bool
	// Authenticated means that only clients with a proven identity can connect, as with a TLS
	// configuration that requires and verifies certificates.
	Authenticated bool
	// EachConn means that connections can differ from the other fields and the address, such as
	// connections from an HTTP server with several listeners. The server then checks each
	// connection: its local address, and its TLS state, from a method ConnectionState()
	// tls.ConnectionState. It closes connections that are neither local nor protected.
	EachConn bool
}

// ProtectionOf returns what l states about its protection. For a listener without a method
// Protection the result is what is known: Local for the address of a loopback interface, a unix
// socket, or memory (the networks "pipe" and "memory"), and Encrypted for a listener of crypto/tls.
// A method Unwrap() net.Listener is followed. A listener that wraps another one, and changes
// neither what reaches it nor what protects it, can forward its protection:
//
//	func (l *Limited) Protection() anser.Protection { return anser.ProtectionOf(l.Listener) }
func ProtectionOf(l net.Listener) Protection {
	var p Protection
	inner := l
	for range maxWrappers {
		if stating, ok := inner.(interface{ Protection() Protection }); ok {
			p = stating.Protection()
			break
		}
		if reflect.TypeOf(inner) == tlsListener {
			p.Encrypted = true
			break
		}
		wrapper, ok := inner.(interface{ Unwrap() net.Listener })
		if !ok {
			break
		}
		inner = wrapper.Unwrap()
	}
	p.Local = p.Local || accept.Near(l.Addr())
	return p
}

// maxWrappers ends the search in a listener that wraps itself.
const maxWrappers = 16

// tlsListener is the type of the listeners of crypto/tls, which is not exported.
var tlsListener = reflect.TypeOf(tls.NewListener(nil, nil))

// DemandsCertificates reports whether a server with this TLS configuration serves only clients with
// a verified certificate. It is for transports that state a [Protection].
func DemandsCertificates(config *tls.Config) bool {
	return config != nil && config.ClientAuth == tls.RequireAndVerifyClientCert
}

// CheckListener returns what is known of the protection of l, or an error if Serve would refuse l
// because other machines can reach it and it lacks protection. It is for protocols that accept
// connections themselves; see [Server.OpenConn].
func (s *Server) CheckListener(l net.Listener) (Protection, error) {
	if err := s.usable(); err != nil {
		return Protection{}, err
	}
	if l == nil {
		return Protection{}, errNilServe
	}
	return s.checkListener(l)
}

// checkListener returns an error if other machines reach l and its connections lack protection.
func (s *Server) checkListener(l net.Listener) (Protection, error) {
	if l.Addr() == nil {
		return Protection{}, errors.New("serve: the listener has no address: Addr must not be nil")
	}
	p := ProtectionOf(l)
	if s.o.insecure || p.Local {
		return p, nil
	}
	if !p.Authenticated && len(s.o.authenticators) == 0 && DemandsCertificates(s.o.tls) {
		p.EachConn = true // the server does not add TLS to a connection that has TLS already
	}
	p.Encrypted = p.Encrypted || s.o.tls != nil
	// With EachConn, a connection may have certificates.
	p.Authenticated = p.Authenticated || s.authenticates() || p.EachConn
	if lacks := p.lacks(); lacks != "" {
		return p, fmt.Errorf("serve on %q: the address is reachable from other machines, or unknown, and there is no %s: %s; "+
			"a listener that protects its connections by itself says so with a method Protection", listenerAddress(l), lacks, publicAdvice)
	}
	return p, nil
}

// checkConn returns an error if the connection may come from another machine and lacks protection.
func (s *Server) checkConn(nc net.Conn) error {
	if accept.Near(nc.LocalAddr()) {
		return nil
	}
	p := Protection{Encrypted: s.o.tls != nil, Authenticated: s.authenticates()}
	if sc, ok := nc.(secured); ok { // the server's own TLS is not used
		p = s.protectedBy(new(sc.ConnectionState()))
	}
	if text := s.unprotected(p); text != "" {
		return wire.Errorf(wire.Unauthenticated, "%s", text)
	}
	return nil
}

// checkPeer returns an error if the connection certainly came from another machine and lacks
// protection.
func (s *Server) checkPeer(remote *Peer) error {
	if !accept.Elsewhere(remote.Local) {
		return nil
	}
	if text := s.unprotected(s.protectedBy(remote.TLS)); text != "" {
		return errors.New(text)
	}
	return nil
}

// protectedBy returns the protection of a connection with this state of TLS, or nil for one
// without.
func (s *Server) protectedBy(state *tls.ConnectionState) Protection {
	proven := state != nil && len(state.VerifiedChains) > 0
	return Protection{Encrypted: state != nil, Authenticated: proven || len(s.o.authenticators) > 0}
}

// unprotected says what a connection from another machine lacks, or returns "".
func (s *Server) unprotected(p Protection) string {
	lacks := p.lacks()
	if s.o.insecure || lacks == "" {
		return ""
	}
	return fmt.Sprintf("the connection comes from another machine and has no %s: %s", lacks, publicAdvice)
}

// authenticates reports whether the server authenticates every client.
func (s *Server) authenticates() bool {
	return len(s.o.authenticators) > 0 || DemandsCertificates(s.o.tls)
}

// lacks names what is missing for connections from other machines.
func (p Protection) lacks() string {
	switch {
	case p.Encrypted && p.Authenticated:
		return ""
	case p.Encrypted:
		return "authentication"
	case p.Authenticated:
		return "TLS"
	}
	return "TLS and no authentication"
}

const publicAdvice = "give the server anser.TLS and anser.Authenticate (or a TLS configuration whose ClientAuth is tls.RequireAndVerifyClientCert), " +
	"listen on 127.0.0.1, or accept the risk with anser.InsecurePublic"

// listenerAddress returns the address with the scheme of its transport.
func listenerAddress(l net.Listener) string {
	a := l.Addr()
	if a.Network() == "tcp" {
		return a.String()
	}
	return a.Network() + "://" + a.String()
}
