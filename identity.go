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

// Identity is the identity of a client, as determined by an [Authenticator]. It is shared by
// everything that runs for the client: do not change an Identity that you were given.
type Identity struct {
	// Subject is the name of the client, which is never empty. Two identities with the same subject
	// are the same client.
	Subject string
	Groups  []string
	// Expires is when the identity ends unless the client renews it; the zero time means never.
	Expires time.Time
	// Scheme is the scheme of the credential that proved the identity, such as "token", or
	// [SchemeTLS]. It is filled in if the Authenticator leaves it empty.
	Scheme     string
	Attributes map[string]string
	// Revoked, if it is not nil, is called about once per second and connection of the client. When
	// it returns true, everything open on the connection ends with Unauthenticated, including the
	// contexts of handlers, and the connection is closed. It is called from several goroutines and
	// must be fast.
	Revoked func() bool
}

// In reports whether the client is in the group.
func (id *Identity) In(group string) bool { return slices.Contains(id.Groups, group) }

// SchemeTLS is the scheme of clients that present only the certificate verified by TLS.
const SchemeTLS = "tls"

// AuthRequest is the credential that a client presents. Data is never printed.
type AuthRequest struct {
	// Scheme is the kind of Data. With SchemeTLS there is no Data, and Peer.TLS has a verified
	// chain; no client can send that scheme.
	Scheme string
	// Data is overwritten when Authenticate has returned.
	Data []byte `json:"-"`
	Peer Peer
}

// ErrOtherScheme is what an [Authenticator] returns for credentials that are not of its kind.
var ErrOtherScheme = errors.New("the credential has another scheme")

// Authenticator determines the identity of a client. Package auth has implementations.
//
// Authenticate is called in the handshake of a connection, and again when the client renews its
// credential, from several goroutines at once. It returns an identity or an error. The error is
// written to the server's log at debug level and never sent; it must not contain the credential.
// ctx ends after the option [HandshakeTimeout], and when the connection is lost. A panic counts as
// an error. Compare secrets with crypto/subtle.
type Authenticator interface {
	Authenticate(ctx context.Context, l *AuthRequest) (*Identity, error)
}

// AuthenticatorFunc is a function that implements [Authenticator].
type AuthenticatorFunc func(ctx context.Context, l *AuthRequest) (*Identity, error)

// Authenticate calls f.
func (f AuthenticatorFunc) Authenticate(ctx context.Context, l *AuthRequest) (*Identity, error) {
	return f(ctx, l)
}

// Authorizer decides which clients may call which methods. Package auth has one that follows a list
// of rules.
//
// Allows is called once per method of a connection, and again when Version or the identity of the
// connection has changed. method is the canonical name, even if the client called an alias, or a
// method that the server does not have. Version is called for every call. Both are called from
// several goroutines at once and must be fast. A panic counts as a refusal.
type Authorizer interface {
	Allows(id *Identity, method string) bool
	Version() uint64
}

// clone returns a copy that the server owns.
func (id *Identity) clone() *Identity {
	own := *id
	own.Groups, own.Attributes = slices.Clone(id.Groups), maps.Clone(id.Attributes)
	return &own
}

// hidden is printed in place of a secret.
const hidden = "[hidden]"

// String returns the scheme and the peer, and hides Data.
func (l AuthRequest) String() string {
	return fmt.Sprintf("login with %q %s from %s", l.Scheme, hidden, addressOf(l.Peer.Addr))
}

// GoString is String.
func (l AuthRequest) GoString() string { return l.String() }

// Format hides Data whatever the verb.
func (l AuthRequest) Format(f fmt.State, _ rune) { io.WriteString(f, l.String()) }

// LogValue hides Data.
func (l AuthRequest) LogValue() slog.Value { return slog.StringValue(l.String()) }
