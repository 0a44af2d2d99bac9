// Package jwt authenticates clients by JSON Web Tokens (RFC 7519), signed by an issuer:
//
//	v, err := jwt.New("https://id.example.org", "shop", jwt.Keys{{ID: "2026-1", Key: publicKey}})
//	s := anser.NewServer(anser.Authenticate(v))
//
//	c, err := anser.Dial("10.0.0.7:8972", anser.TLS(config), jwt.From(source))
package jwt

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	lib "github.com/golang-jwt/jwt/v5"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
)

// Key is a key of an issuer. Its type determines the accepted algorithms:
//
//	*rsa.PublicKey     RS256, RS384, RS512, PS256, PS384, PS512; at least 2,048 bits
//	*ecdsa.PublicKey   ES256, ES384 or ES512, by its curve
//	ed25519.PublicKey  EdDSA
//	[]byte             HS256, HS384, HS512; at least 32 bytes, which the issuer has too
type Key struct {
	ID  string // the "kid" of tokens; may be empty for a single key
	Key any
}

// String returns the type of the key without its value.
func (k Key) String() string { return fmt.Sprintf("key %q, a %T [hidden]", k.ID, k.Key) }

// GoString is like String.
func (k Key) GoString() string { return k.String() }

// Format hides the key with every verb.
func (k Key) Format(f fmt.State, _ rune) { io.WriteString(f, k.String()) }

// LogValue hides the key.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Verifier is an [anser.Authenticator] for tokens of one issuer. Create one with [New]. All
// methods are safe for concurrent use.
type Verifier struct {
	o      options
	parser *lib.Parser
	now    atomic.Pointer[map[string]checked]
}

// checked is a key with its algorithms.
type checked struct {
	key  any
	algs []string
}

// Option configures a [Verifier].
type Option func(*options)

type options struct {
	leeway time.Duration
	groups string
}

// Leeway sets the tolerated difference between the clocks of the issuer and the server; the
// default is 30 s. A token is valid for that much longer.
func Leeway(d time.Duration) Option { return func(o *options) { o.leeway = d } }

// Groups names the claim that lists the groups of the subject; the default is "groups".
func Groups(claim string) Option { return func(o *options) { o.groups = claim } }

// Keys is the initial list of keys for [New].
type Keys []Key

// New returns an authenticator for tokens of the issuer ("iss") for the audience ("aud"), signed
// with one of the keys. A token must have a subject ("sub") and an expiry time ("exp"), and must
// already be valid ("nbf", "iat"). Its subject is that of the identity, which expires with the
// token.
func New(issuer, audience string, keys Keys, opts ...Option) (*Verifier, error) {
	v := &Verifier{o: options{leeway: 30 * time.Second, groups: "groups"}}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("jwt.New: an option is nil")
		}
		opt(&v.o)
	}
	switch {
	case issuer == "" || audience == "":
		return nil, errors.New("jwt: an issuer and an audience are needed: a token for another audience must not be accepted here")
	case v.o.leeway < 0 || v.o.leeway > time.Hour:
		return nil, fmt.Errorf("jwt.Leeway(%v): want from 0 to an hour", v.o.leeway)
	case v.o.groups == "":
		return nil, errors.New("jwt.Groups: the name of the claim is empty")
	}
	v.parser = lib.NewParser(lib.WithIssuer(issuer), lib.WithAudience(audience), lib.WithExpirationRequired(), lib.WithIssuedAt(),
		lib.WithLeeway(v.o.leeway), lib.WithStrictDecoding())
	if err := v.SetKeys(keys...); err != nil {
		return nil, err
	}
	return v, nil
}

// SetKeys replaces all keys. Connections stay until their tokens expire, unless their key was
// removed or has changed: those are closed within about a second.
func (v *Verifier) SetKeys(keys ...Key) error {
	next := make(map[string]checked, len(keys))
	for i, k := range keys {
		algs, err := algorithms(k.Key)
		_, double := next[k.ID]
		switch {
		case err != nil:
			return fmt.Errorf("jwt: keys[%d], %q: %w", i, k.ID, err)
		case double:
			return fmt.Errorf("jwt: keys[%d] has the id %q, which is there twice", i, k.ID)
		case k.ID == "" && len(keys) > 1:
			return fmt.Errorf("jwt: keys[%d] has no id: only a single key may have none", i)
		}
		next[k.ID] = checked{k.Key, algs}
	}
	v.now.Store(&next)
	return nil
}

// algorithms returns the algorithms of a key.
func algorithms(key any) ([]string, error) {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k == nil || k.N == nil || k.N.BitLen() < 2048 {
			return nil, errors.New("the RSA key has less than 2,048 bits")
		}
		return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, nil
	case *ecdsa.PublicKey:
		if k == nil {
			return nil, errors.New("the key is nil")
		}
		switch k.Curve {
		case elliptic.P256():
			return []string{"ES256"}, nil
		case elliptic.P384():
			return []string{"ES384"}, nil
		case elliptic.P521():
			return []string{"ES512"}, nil
		}
		return nil, errors.New("the curve of the key is none of P-256, P-384 and P-521")
	case ed25519.PublicKey:
		if len(k) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("the Ed25519 key has %d bytes, want %d", len(k), ed25519.PublicKeySize)
		}
		return []string{"EdDSA"}, nil
	case []byte:
		if len(k) < 32 {
			return nil, fmt.Errorf("the secret has %d bytes, want at least 32", len(k))
		}
		return []string{"HS256", "HS384", "HS512"}, nil
	}
	return nil, fmt.Errorf("a key of type %T: want *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey or []byte", key)
}

var (
	errKey       = errors.New("jwt: the token names an unknown key")
	errAlgorithm = errors.New("jwt: the algorithm of the token does not match its key")
)

// find returns the key for a token if it supports the token's algorithm.
func (v *Verifier) find(keys map[string]checked, t *lib.Token) (id string, k checked, err error) {
	id, _ = t.Header["kid"].(string)
	k, ok := keys[id]
	if !ok && len(keys) == 1 && (id == "" || keys[""].key != nil) { // the key or the token has no ID
		for id, k = range keys {
			ok = true
		}
	}
	switch {
	case !ok:
		return "", checked{}, errKey
	case !slices.Contains(k.algs, t.Method.Alg()):
		return "", checked{}, errAlgorithm
	}
	return id, k, nil
}

// Authenticate implements [anser.Authenticator].
func (v *Verifier) Authenticate(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
	if l.Scheme != auth.SchemeToken || bytes.Count(l.Data, []byte(".")) != 2 {
		return nil, anser.ErrOtherScheme
	}
	keys := v.now.Load()
	var id string
	var used checked
	claims := lib.MapClaims{}
	_, err := v.parser.ParseWithClaims(string(l.Data), claims, func(t *lib.Token) (_ any, err error) {
		if id, used, err = v.find(*keys, t); err != nil {
			return nil, err
		}
		return used.key, nil
	})
	if err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	subject, err := claims.GetSubject()
	if err != nil || subject == "" {
		return nil, errors.New("jwt: the token has no subject")
	}
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil {
		return nil, errors.New("jwt: the token has no expiry time")
	}
	issuer, _ := claims.GetIssuer()
	return &anser.Identity{
		Subject: subject, Groups: texts(claims[v.o.groups]), Expires: exp.Add(v.o.leeway),
		Attributes: map[string]string{"issuer": issuer}, Revoked: v.revoked(keys, id, used),
	}, nil
}

// texts returns the strings of a claim that is a string or a list of them.
func texts(claim any) (list []string) {
	switch c := claim.(type) {
	case string:
		return []string{c}
	case []any:
		for _, v := range c {
			if s, ok := v.(string); ok {
				list = append(list, s)
			}
		}
	}
	return list
}

// revoked returns a function that reports whether the key was removed or changed.
func (v *Verifier) revoked(seen *map[string]checked, id string, used checked) func() bool {
	var last atomic.Pointer[map[string]checked]
	last.Store(seen)
	return func() bool {
		keys := v.now.Load()
		if keys == last.Load() {
			return false
		}
		if now, ok := (*keys)[id]; !ok || !same(now.key, used.key) {
			return true
		}
		last.Store(keys)
		return false
	}
}

func same(a, b any) bool {
	switch a := a.(type) {
	case *rsa.PublicKey:
		b, ok := b.(*rsa.PublicKey)
		return ok && a.Equal(b)
	case *ecdsa.PublicKey:
		b, ok := b.(*ecdsa.PublicKey)
		return ok && a.Equal(b)
	case ed25519.PublicKey:
		b, ok := b.(ed25519.PublicKey)
		return ok && bytes.Equal(a, b)
	case []byte:
		b, ok := b.([]byte)
		return ok && bytes.Equal(a, b)
	}
	return false
}

// From makes a client send the tokens that source returns. It is called per connection, and again
// before the token expires, which renews it on the existing connections; see [anser.Credentials].
// The expiry time is read from the token, which is not verified here.
func From(source func(ctx context.Context) (string, error)) anser.DialOption {
	if source == nil {
		return anser.Credentials(nil)
	}
	return anser.Credentials(func(ctx context.Context) (anser.Credential, error) {
		token, err := source(ctx)
		if err != nil {
			return anser.Credential{}, err
		}
		claims := lib.MapClaims{}
		if _, _, err := lib.NewParser().ParseUnverified(token, claims); err != nil {
			return anser.Credential{}, errors.New("jwt.From: the source did not return a JSON Web Token")
		}
		c := anser.Credential{Scheme: auth.SchemeToken, Data: []byte(token)}
		if exp, err := claims.GetExpirationTime(); err == nil && exp != nil {
			c.Expires = exp.Time
		}
		return c, nil
	})
}
