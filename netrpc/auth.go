package netrpc

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/gobwire"
	"github.com/anser-rpc/anser/netrpc/internal/link"
)

// LoginMethod is the method by which a connection authenticates itself, on servers with
// [Server.Authenticate]. Its argument is a token, a string, and its reply is true. Every client of
// net/rpc or JSON-RPC can call it; those of this package do with [Dialer.Token].
const LoginMethod = "Anser.Login"

// Credentials are what a connection shows of itself.
//
// [Server.Authenticate] gets them, and returns an identity of the server's choice, which [IdentityFrom]
// gives to methods and interceptors, or an error. It is called when a connection begins, with the
// address and the TLS certificates of the other side, and for a connection by HTTP with its request; if it
// returns an error then, an HTTP connection is refused with 401, and any other has to call
// [LoginMethod] first, upon which Authenticate is called with the token. Until then requests may have
// 64 KiB, all of them but the login are refused with the same words, whether there is such a method
// or not, and the connection is closed. The error is logged and not sent. A later login takes the place of
// the one before for the calls that come after it; those that run or wait keep the identity with which they were
// admitted. A later login that fails closes the connection. Compare secrets with crypto/subtle.
type Credentials struct {
	// Peer is the other side: its address and, over TLS, its certificates.
	Peer anser.Peer
	// Token is that of a header "Authorization: Bearer", or of a call of LoginMethod; or "".
	Token string
	// Request is the CONNECT request of an HTTP connection, which must not be changed; or nil. With it,
	// Request.BasicAuth works.
	Request *http.Request
}

// unknownLimit is the largest request of a connection that has not authenticated itself.
const unknownLimit = 64 << 10

var errUnknown = &link.Refusal{Kind: link.Unknown, Text: "rpc: unauthenticated: call " + LoginMethod + " with a valid token first"}

// introduce asks Authenticate about a connection that has not said anything yet. One that has to log in has
// so much time for it.
func (c *session) introduce(timeout time.Duration) {
	switch {
	case c.server.Authenticate != nil:
		if c.isKnown() || c.authenticate(&Credentials{Peer: c.peer}) || c.link == nil {
			return
		}
	case c.request != nil && c.conn.NeedsLogin():
		c.prove(bearer(c.request))
		fallthrough
	default:
		if !c.conn.NeedsLogin() || c.link == nil {
			return
		}
	}
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

// login reads a token and tries it, and answers the call if it is valid.
func (c *session) login() *link.Refusal {
	var token string
	if err := gobwire.Guard(func() error { return c.codec.ReadRequestBody(&token) }); err != nil {
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
	if c.link != nil {
		c.link.SetMaxMessage(c.server.limits().MaxMessage)
	}
	return nil
}

// hasLogin reports whether LoginMethod means anything here.
func (c *session) hasLogin() bool { return c.server.Authenticate != nil || c.conn.Authenticates() }

// schemeToken is that of auth.SchemeToken.
const schemeToken = "token"

// prove shows a token to the authenticators of Server.Anser.
func (c *session) prove(token string) bool {
	if token == "" {
		return false
	}
	return c.conn.Authenticate(c.ctx, schemeToken, []byte(token)) == nil
}

// authenticate asks Authenticate, and remembers what it says.
func (c *session) authenticate(credentials *Credentials) bool {
	identity, ok := c.server.ask(c.ctx, credentials)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.identity = ok, identity
	return ok
}

// ask calls Authenticate. A panic there is a no.
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
	_, known := c.who()
	return known
}

// who returns the identity of the connection as it is now, if it has one.
func (c *session) who() (identity any, known bool) {
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

// httpCredentials returns what an HTTP request shows.
func httpCredentials(r *http.Request) *Credentials {
	c := &Credentials{Token: bearer(r), Request: r}
	c.Peer.TLS = r.TLS
	c.Peer.Addr = httpAddr(r.RemoteAddr)
	c.Peer.Local, _ = r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return c
}

// httpAddr is the address that net/http has as text.
type httpAddr string

func (httpAddr) Network() string  { return "tcp" }
func (a httpAddr) String() string { return string(a) }

// PeerFrom returns the other side of the connection that a call came over: its address and, over TLS, its
// certificates. It works in methods that are served by Anser too.
func PeerFrom(ctx context.Context) (anser.Peer, bool) {
	if c, ok := ctx.Value(sessionKey{}).(*session); ok {
		return c.peer, true
	}
	return anser.PeerFrom(ctx)
}

// identityKey is the key of a call's identity in its context.
type identityKey struct{}

// IdentityFrom returns what [Server.Authenticate] said of the connection that a call came over when the call was
// admitted, or nil. A later login on the connection does not change it. On a server with [Server.Anser] it returns what
// anser.IdentityFrom does, an *anser.Identity.
func IdentityFrom(ctx context.Context) any {
	if identity := ctx.Value(identityKey{}); identity != nil {
		return identity
	}
	if identity := anser.IdentityFrom(ctx); identity != nil {
		return identity
	}
	return nil
}
