package netrpc

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/gobwire"
	"github.com/anser-rpc/anser/internal/link"
)

// LoginMethod is the method by which a connection authenticates, on servers with
// [Server.Authenticate]. Its argument is a token, a string, and its reply is true. Every net/rpc or
// JSON-RPC client can call it; clients of this package do if [Dialer.Token] is set.
const LoginMethod = "Anser.Login"

// Credentials are the credentials of a connection.
//
// [Server.Authenticate] receives them, and returns an error or an identity of any type, which
// [IdentityFrom] returns in methods and interceptors. It is called when a connection begins, with
// the address and the TLS certificates of the peer, and for an HTTP connection with its request.
// If it returns an error then, an HTTP connection is rejected with 401, and any other connection
// must first call [LoginMethod], for which Authenticate is called with the token. Until then
// requests are limited to 64 KiB, all of them except the login are rejected with the same text,
// whether the method exists or not, and the connection is closed. The error is logged and not
// sent. A later login replaces the previous identity for later calls; calls that run or wait keep
// the identity with which they were admitted. A later login that fails closes the connection.
// Compare secrets with crypto/subtle.
type Credentials struct {
	// Peer is the address of the peer and, over TLS, its certificates.
	Peer anser.Peer
	// Token is the token in a header "Authorization: Bearer", or in a call of LoginMethod; or "".
	Token string
	// Request is the CONNECT request of an HTTP connection, which must not be modified; or nil. It
	// allows the use of Request.BasicAuth.
	Request *http.Request
}

// unknownLimit is the maximum size in bytes of a request before the connection has authenticated.
const unknownLimit = 64 << 10

var errUnknown = &link.Refusal{Kind: link.Unknown, Text: "rpc: unauthenticated: call " + LoginMethod + " with a valid token first"}

// introduce calls Authenticate for a new connection. A connection that must log in has the timeout
// for that.
func (c *session) introduce(timeout time.Duration) {
	switch {
	case c.server.Authenticate != nil:
		c.place.heard() // Authenticate may take its time
		if c.isKnown() || c.authenticate(&Credentials{Peer: c.peer}) || c.link == nil {
			c.place.leave()
			return
		}
	case c.request != nil && c.conn.NeedsLogin():
		c.prove(bearer(c.request))
		fallthrough
	default:
		if !c.conn.NeedsLogin() || c.link == nil {
			c.place.leave()
			return
		}
	}
	c.place.awaiting(c.peer.TLS != nil)
	l := c.server.limits()
	l.MaxMessage = min(l.MaxMessage, unknownLimit)
	c.link.SetLimits(l)
	if c.server.Authenticate == nil {
		return // the server of package anser bounds the time
	}
	t := time.AfterFunc(timeout, func() {
		if !c.isKnown() {
			c.codec.Close()
		}
	})
	context.AfterFunc(c.ctx, func() { t.Stop() })
}

// login reads a token and checks it, and answers the call if it is valid.
func (c *session) login() *link.Refusal {
	var token string
	if err := gobwire.Guard(func() error { return c.codec.ReadRequestBody(&token) }); err != nil {
		return errUnknown
	}
	if !c.place.heard() {
		return errUnknown
	}
	ok := token != ""
	if ok && c.server.Authenticate != nil {
		ok = c.authenticate(&Credentials{Peer: c.peer, Token: token, Request: c.request})
	} else if ok {
		ok = c.prove(token)
	}
	if !ok {
		return errUnknown
	}
	c.place.leave()
	if c.link != nil {
		c.link.SetMaxMessage(c.server.limits().MaxMessage)
	}
	return nil
}

// authenticates reports whether clients must authenticate themselves.
func (s *Server) authenticates() bool { return s.Authenticate != nil || s.Anser.Authenticates() }

// hasLogin reports whether LoginMethod is available.
func (c *session) hasLogin() bool { return c.server.authenticates() }

// schemeToken is the value of auth.SchemeToken.
const schemeToken = "token"

// prove passes a token to the authenticators of Server.Anser.
func (c *session) prove(token string) bool {
	if token == "" {
		return false
	}
	return c.conn.Authenticate(c.ctx, schemeToken, []byte(token)) == nil
}

// authenticate calls Authenticate, and stores the result.
func (c *session) authenticate(credentials *Credentials) bool {
	identity, ok := c.server.ask(c.ctx, credentials)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.identity = ok, identity
	return ok
}

// ask calls Authenticate. A panic counts as a rejection.
func (s *Server) ask(ctx context.Context, c *Credentials) (identity any, ok bool) {
	err := gobwire.Guard(func() (err error) {
		identity, err = s.Authenticate(ctx, c)
		return err
	})
	if err != nil {
		s.stats.unauthenticated.Add(1)
		s.log().Debug("rpc: not authenticated", "peer", c.Peer.Addr, "err", err)
		return nil, false
	}
	return identity, true
}

func (c *session) isKnown() bool {
	_, known := c.identified()
	return known
}

// identified returns the present identity of the connection, if it has one.
func (c *session) identified() (identity any, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.identity, c.known
}

// bearer returns the token of an HTTP request, or "".
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// httpCredentials returns the credentials of an HTTP request.
func httpCredentials(r *http.Request) *Credentials {
	c := &Credentials{Token: bearer(r), Request: r}
	c.Peer.TLS = r.TLS
	c.Peer.Addr = httpAddr(r.RemoteAddr)
	c.Peer.Local, _ = r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return c
}

// httpAddr is an address in net/http's text form.
type httpAddr string

func (httpAddr) Network() string  { return "tcp" }
func (a httpAddr) String() string { return string(a) }

// PeerFrom returns the peer of the connection of a call: its address and, over TLS, its
// certificates. It also works in methods called over Anser's protocol.
func PeerFrom(ctx context.Context) (anser.Peer, bool) {
	if c, ok := ctx.Value(sessionKey{}).(*session); ok {
		return c.peer, true
	}
	return anser.PeerFrom(ctx)
}

// identityKey is the key of a call's identity in its context.
type identityKey struct{}

// IdentityFrom returns the identity that [Server.Authenticate] returned for the connection of a
// call, at the time when the call was admitted, or nil. A later login on the connection does not
// change it. On a server with [Server.Anser] it returns the result of anser.IdentityFrom, an
// *anser.Identity.
func IdentityFrom(ctx context.Context) any {
	if identity := ctx.Value(identityKey{}); identity != nil {
		return identity
	}
	if identity := anser.IdentityFrom(ctx); identity != nil {
		return identity
	}
	return nil
}
