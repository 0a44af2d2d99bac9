package anser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// Identity is who a client is, as an [Authenticator] has found out. It is shared by all that run for the
// client: do not change one that you were given.
type Identity struct {
	// Subject is the name of the client, which is never empty. Two identities with the same subject are the same
	// client.
	Subject string
	Groups  []string
	// Expires is when the identity ends unless the client renews it; zero: never.
	Expires time.Time
	// Scheme is that of the credential that proved it, such as "token", or [SchemeTLS]. It is filled in where an
	// Authenticator leaves it empty.
	Scheme     string
	Attributes map[string]string
	// Revoked, if it is set, is asked about every second for each connection of the client. When it returns true, all that
	// is open on the connection ends with Unauthenticated, the contexts of handlers included, and the connection is
	// closed. It is called from several goroutines and must be fast.
	Revoked func() bool
}

// In reports whether the client is in the group.
func (id *Identity) In(group string) bool { return slices.Contains(id.Groups, group) }

// SchemeTLS is the scheme of clients that show nothing but the certificate that TLS has proven.
const SchemeTLS = "tls"

// AuthRequest is what a client shows of itself. It never prints its Data.
type AuthRequest struct {
	// Scheme says what Data is. With SchemeTLS there is none, and Peer.TLS has a chain that was verified;
	// no client can send that scheme.
	Scheme string
	// Data is overwritten when Authenticate has returned.
	Data []byte `json:"-"`
	Peer Peer
}

// ErrOtherScheme is what an [Authenticator] returns for credentials that are not of its kind.
var ErrOtherScheme = errors.New("the credential has another scheme")

// Authenticator finds out who a client is. Package auth has some.
//
// Authenticate is called in the handshake of a connection, and again when its client renews the credential,
// from several goroutines at once. It returns an identity, or an error, which is written to the server's log at
// debug and never sent: it must not hold the credential. ctx ends after the option [HandshakeTimeout], and when
// the connection is lost. A panic is a no. Compare secrets with crypto/subtle.
type Authenticator interface {
	Authenticate(ctx context.Context, l *AuthRequest) (*Identity, error)
}

// AuthenticatorFunc is a function as an [Authenticator].
type AuthenticatorFunc func(ctx context.Context, l *AuthRequest) (*Identity, error)

// Authenticate calls f.
func (f AuthenticatorFunc) Authenticate(ctx context.Context, l *AuthRequest) (*Identity, error) {
	return f(ctx, l)
}

// Authorizer decides who may call what. Package auth has one that follows a list of rules.
//
// Allows is asked once for each method of a connection, and again when the Version or the connection's
// identity has changed; method is the canonical name, also where the client called an alias, or one that the server does
// not have. Version is asked with every call. Both are called from several goroutines at once and must be fast.
// A panic is a no.
type Authorizer interface {
	Allows(id *Identity, method string) bool
	Version() uint64
}

// clone makes the identity the server's own.
func (id *Identity) clone() *Identity {
	own := *id
	own.Groups, own.Attributes = slices.Clone(id.Groups), maps.Clone(id.Attributes)
	return &own
}

// hidden is what is printed in place of a secret.
const hidden = "[hidden]"

// String says the scheme and the peer, and hides Data.
func (l AuthRequest) String() string {
	return fmt.Sprintf("login with %q %s from %s", l.Scheme, hidden, addressOf(l.Peer.Addr))
}

// GoString is String.
func (l AuthRequest) GoString() string { return l.String() }

// Format hides Data whatever the verb.
func (l AuthRequest) Format(f fmt.State, _ rune) { io.WriteString(f, l.String()) }

// LogValue hides Data.
func (l AuthRequest) LogValue() slog.Value { return slog.StringValue(l.String()) }
