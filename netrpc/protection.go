package netrpc

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/accept"
)

const publicAdvice = "serve a listener of crypto/tls and set Server.Authenticate, listen on 127.0.0.1, or accept the risk with Server.InsecurePublic"

// checkListener returns an error if other machines can reach l and its connections lack
// protection.
func (s *Server) checkListener(l net.Listener) (anser.Protection, error) {
	addr := l.Addr()
	if addr == nil {
		return anser.Protection{}, errors.New("rpc.Serve: the listener has no address: Addr must not be nil")
	}
	if s.Anser != nil {
		return s.Anser.CheckListener(l)
	}
	p := anser.ProtectionOf(l)
	if s.InsecurePublic || p.Local || s.protected(p) {
		return p, nil
	}
	return p, fmt.Errorf("rpc.Serve on %q: the address can be reached from other machines, or it is not known, and TLS or authentication is missing: %s",
		addr.String(), publicAdvice)
}

// checkConn returns an error if the connection certainly comes from an address that other machines
// can reach, and lacks protection.
func (s *Server) checkConn(conn io.ReadWriteCloser) error {
	if s == nil {
		return errNoServer
	}
	nc, ok := conn.(net.Conn)
	if !ok {
		return nil
	}
	p := anser.Peer{Local: nc.LocalAddr()}
	if tc, ok := nc.(interface{ ConnectionState() tls.ConnectionState }); ok {
		p.TLS = new(tc.ConnectionState())
	}
	return s.checkPeer(p)
}

// checkRequest is checkConn for an HTTP request.
func (s *Server) checkRequest(r *http.Request) error {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return s.checkPeer(anser.Peer{Local: local, TLS: r.TLS})
}

func (s *Server) checkPeer(p anser.Peer) error {
	if s.Anser != nil {
		return s.Anser.CheckPeer(p)
	}
	if s.InsecurePublic || !accept.Elsewhere(p.Local) || s.protected(anser.Protection{Encrypted: p.TLS != nil}) {
		return nil
	}
	return fmt.Errorf("the address %q can be reached from other machines, and TLS or authentication is missing: %s", p.Local, publicAdvice)
}

// protected reports whether connections with this protection may come from other machines.
func (s *Server) protected(p anser.Protection) bool {
	return p.Encrypted && (p.Authenticated || s.Authenticate != nil)
}
