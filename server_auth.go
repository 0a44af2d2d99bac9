package anser

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/handshakes"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// The identity of the client of a server's connection, and what it allows.

// verifiedIdentity is an identity with the time of its end.
type verifiedIdentity struct {
	identity *Identity
	expires  mono.Time // 0: never
	drain    mono.Time // time at which the connection is drained, so that one with a newer certificate replaces it, 0: never
}

// connAuth is the authentication of a connection of a server with authenticators.
type connAuth struct {
	now atomic.Pointer[verifiedIdentity]

	mu     sync.Mutex   // guards the fields below
	next   *AuthRequest // to check, or nil
	busy   bool         // a goroutine checks credentials
	cancel func()       // ends its context; nil while there is none
	ended  bool         // the connection has ended
}

var (
	errLapsed = refusal(Unauthenticated, "unauthenticated")
	errDenied = refusal(PermissionDenied, "permission denied")
)

// The reasons why a client was rejected: the keys of ServerStats.Unauthenticated.
const (
	nothingShown  = "nothing shown"
	malformed     = "malformed"
	unknownScheme = "unknown scheme"
	notValid      = "not valid"
	lapsed        = "expired"
	otherSubject  = "other subject"
	revoked       = "revoked"
)

// authFailures counts the clients that were rejected, by reason. The zero value is ready for use.
type authFailures struct {
	mu sync.Mutex
	by map[string]int64
}

func (s *authFailures) add(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = make(map[string]int64)
	}
	s.by[reason]++
}

func (s *authFailures) snapshot() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]int64, len(s.by))
	for reason, n := range s.by {
		out[reason] = n
	}
	return out
}

// countAuthFailure counts and logs why a client is rejected.
func (s *Server) countAuthFailure(c *serverConn, reason string, err error) {
	s.stats.strangers.add(reason)
	s.log.Debug("not authenticated", "peer", c.peerInfo().Addr, "reason", reason, "err", err)
}

// identify authenticates the client, as the last step of the handshake before the server sends
// anything.
func (s *Server) identify(c *serverConn, st *reading, g *handshakes.Pending) error {
	login := &AuthRequest{Scheme: SchemeTLS, Peer: c.peerInfo()}
	switch {
	case c.peer.Features&wire.FeatureAuth != 0:
		err := st.readAuth(login)
		if !g.Heard() {
			return errTurnedOut
		}
		if err != nil {
			reason := nothingShown
			if broken, ok := errors.AsType[*wire.Error](err); ok && broken != errUnauthenticated {
				reason = malformed
			}
			s.countAuthFailure(c, reason, err)
			return err
		}
	case c.tls == nil || len(c.tls.VerifiedChains) == 0:
		s.countAuthFailure(c, nothingShown, errors.New("the client has neither a credential nor a certificate"))
		return errUnauthenticated
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.o.handshakeTimeout)
	defer cancel()
	now, reason, err := s.authenticate(ctx, login)
	if err != nil {
		s.countAuthFailure(c, reason, err)
		return errUnauthenticated
	}
	c.auth = new(connAuth)
	c.auth.now.Store(now)
	return nil
}

// readAuth reads the AUTH frame that must follow the settings.
func (s *reading) readAuth(l *AuthRequest) error {
	for {
		h, body, ok, err := s.next()
		switch {
		case err != nil:
			return err
		case ok && h.Type == wire.TypeClose:
			return closedByPeer(body)
		case ok && h.Type != wire.TypeAuth:
			return errUnauthenticated
		case ok:
			l.Scheme, l.Data, err = parseAuth(body)
			return err
		}
		if err := s.fill(); err != nil {
			return err
		}
	}
}

// parseAuth is wire.ParseAuth with a copy of the credential, and without the scheme that means
// none.
func parseAuth(body []byte) (scheme string, credential []byte, err error) {
	scheme, credential, err = wire.ParseAuth(body)
	if err == nil && scheme == SchemeTLS {
		err = errUnauthenticated
	}
	return scheme, append([]byte(nil), credential...), err
}

// authenticate asks the authenticators one after the other. The error is for the log.
func (s *Server) authenticate(ctx context.Context, l *AuthRequest) (now *verifiedIdentity, reason string, err error) {
	defer clear(l.Data)
	reason = unknownScheme
	var all []error
	for _, a := range s.o.authenticators {
		id, err := s.ask(ctx, a, l)
		if err == nil {
			now, err = newProof(id, l.Scheme)
		}
		if err == nil && s.isRevoked(id) {
			err = errRevoked
		}
		switch {
		case err == nil:
			return now, "", nil
		case errors.Is(err, errRevoked):
			reason = revoked
		case errors.Is(err, errPast):
			reason = lapsed
		case errors.Is(err, ErrOtherScheme):
			continue
		case reason == unknownScheme:
			reason = notValid
		}
		all = append(all, err)
	}
	if len(all) == 0 {
		all = append(all, ErrOtherScheme)
	}
	return nil, reason, errors.Join(all...)
}

// ask calls one authenticator. A panic counts as a rejection.
func (s *Server) ask(ctx context.Context, a Authenticator, l *AuthRequest) (id *Identity, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.panickedOnTrust("an authenticator panicked", p)
			id, err = nil, errors.New("an authenticator panicked")
		}
	}()
	return a.Authenticate(ctx, l)
}

func (s *Server) panickedOnTrust(what string, p any) {
	s.stats.panics.Add(1)
	// The value may contain the data of the user's code, perhaps a credential, so only its type
	// is logged.
	s.log.Error(what, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
}

// maxLead is how long before the end of a certificate its connections are drained.
const maxLead = 30 * time.Second

var errPast = errors.New("the identity has ended already")

func newProof(id *Identity, scheme string) (*verifiedIdentity, error) {
	if id == nil || id.Subject == "" {
		return nil, errors.New("the authenticator named no subject")
	}
	now := &verifiedIdentity{identity: id.clone()}
	if id.Scheme == "" {
		now.identity.Scheme = scheme
	}
	if !id.Expires.IsZero() {
		left := time.Until(id.Expires)
		if left <= 0 {
			return nil, errPast
		}
		now.expires = mono.Now().Add(left)
		if scheme == SchemeTLS { // which a connection has only once
			now.drain = now.expires.Add(-min(maxLead, left/4))
		}
	}
	return now, nil
}

// identity returns the identity of the client, or nil.
func (c *calleeHalf) identity() *Identity {
	if c.auth == nil {
		return nil
	}
	now := c.auth.now.Load()
	if now == nil { // over another protocol the client has not shown a credential yet
		return nil
	}
	return now.identity
}

// clientKey identifies a client across connections: by its subject, or else by its certificate.
func (c *calleeHalf) clientKey() (key [sha256.Size]byte) {
	if id := c.identity(); id != nil {
		return sha256.Sum256([]byte("subject " + id.Subject))
	}
	if c.tls != nil && len(c.tls.PeerCertificates) > 0 {
		return sha256.Sum256(c.tls.PeerCertificates[0].Raw)
	}
	return key
}

// authorize returns why the client may not call the method now, or nil. It stores the decision of
// the policy in n.
func (c *calleeHalf) authorize(at mono.Time, n *named) (refused *Error) {
	now := c.auth.now.Load()
	if now == nil || now.lapsed(at) { // nil: over another protocol the client has not shown a credential yet
		return errLapsed
	}
	srv := c.server
	if srv.o.authorizer == nil {
		return nil
	}
	version, ok := srv.policyVersion()
	if n.decided != now || n.version != version {
		name := n.name
		if n.method != nil {
			name = n.method.name
		}
		n.decided, n.version = now, version
		n.allowed = name != "" && srv.allows(now.identity, name)
	}
	if !ok || !n.allowed {
		srv.stats.denied.Add(1)
		return errDenied
	}
	return nil
}

// policyVersion returns the version of the policy. It is not ok after a panic.
func (s *Server) policyVersion() (version uint64, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			s.panickedOnTrust("the authorizer panicked", p)
		}
	}()
	return s.o.authorizer.Version(), true
}

func (s *Server) allows(id *Identity, method string) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			s.panickedOnTrust("the authorizer panicked", p)
			ok = false
		}
	}()
	return s.o.authorizer.Allows(id, method)
}

// visible returns the part of the list that the client may call.
func (c *calleeHalf) visible(list *MethodList) *MethodList {
	if c.auth == nil || c.server.o.authorizer == nil {
		return list
	}
	id, out := c.identity(), &MethodList{Methods: []MethodInfo{}}
	for _, m := range list.Methods {
		if c.server.allows(id, m.Name) {
			out.Methods = append(out.Methods, m)
		}
	}
	return out
}

// minAuth is the minimum time between two credentials of a connection.
const minAuth = time.Second

// renew handles another credential of the client.
func (c *serverConn) renew(s *reading, body []byte) error {
	login := new(AuthRequest)
	var err error
	if login.Scheme, login.Data, err = parseAuth(body); err != nil {
		return err
	}
	if s.auths.note(s.arrived, minAuth) != nil {
		return wire.Errorf(wire.Flood, "credentials more often than every %v", minAuth)
	}
	t := c.auth
	if t == nil { // credentials were not asked for
		return nil
	}
	login.Peer = c.peerInfo()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = login // only the newest credential counts
	if !t.busy && !t.ended {
		t.busy = true
		c.spawn(c.checkCredentials)
	}
	return nil
}

// checkCredentials checks the credentials that the client has sent, on a goroutine of its own: an
// authenticator may call other services, and calls go on meanwhile.
func (c *serverConn) checkCredentials() {
	t := c.auth
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		t.mu.Lock()
		login := t.next
		t.next, t.cancel = nil, cancel
		if login == nil || t.ended {
			t.busy, t.cancel = false, nil
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		c.renewWith(ctx, login)
	}
}

// renewWith checks one credential and applies the identity that it proves.
func (c *serverConn) renewWith(ctx context.Context, login *AuthRequest) error {
	srv := c.server
	ctx, cancel := context.WithTimeout(ctx, srv.o.handshakeTimeout)
	defer cancel()
	now, reason, err := srv.authenticate(ctx, login)
	switch {
	case err != nil:
		srv.countAuthFailure(c, reason, err)
		// The client authenticates on another connection, perhaps with better success. Running
		// calls may end.
		c.startDrain(srv.o.grace)
	case now.identity.Subject != c.identity().Subject:
		srv.countAuthFailure(c, otherSubject, errOtherSubject)
		c.failWith(errUnauthenticated)
		return errOtherSubject
	default:
		c.auth.now.Store(now)
		c.upkeep.Stir() // it may end earlier
		c.sweep()       // the new identity may allow less
		if c.session != nil {
			c.session.renewed(c)
		}
	}
	return err
}

var errOtherSubject = errors.New("the renewed credential is that of another subject")

// end ends the check of a credential when the connection has ended.
func (t *connAuth) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.cancel != nil {
		t.cancel()
	}
}
