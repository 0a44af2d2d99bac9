package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
)

// SchemeToken is the scheme of tokens, including those of package auth/jwt.
const SchemeToken = "token"

// Grant is the identity that a token grants. The token itself is not stored in it.
type Grant struct {
	Subject string   `json:"subject"`
	Groups  []string `json:"groups,omitempty"`
	// SHA256 is the digest of the token, in 64 hexadecimal digits: see [Digest].
	SHA256  string    `json:"sha256"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
}

// NewToken returns a token that cannot be guessed: 26 letters and digits.
func NewToken() string { return rand.Text() }

// Digest returns the SHA-256 of a token for [Grant]. In a shell it is: printf %s "$TOKEN" |
// sha256sum. A digest does not protect a weak token: create tokens with [NewToken].
func Digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Tokens authenticates clients by their tokens. It stores only digests. All methods are safe for
// concurrent use.
type Tokens struct {
	now  atomic.Pointer[grants]
	file *follower
}

// grants is the set in use; it is immutable.
type grants struct {
	list []Grant
	sums [][sha256.Size]byte
}

// NewTokens returns an authenticator for these tokens. Without any it rejects all clients.
func NewTokens(list ...Grant) (*Tokens, error) {
	t := new(Tokens)
	if err := t.Set(list...); err != nil {
		return nil, err
	}
	return t, nil
}

// OpenTokens reads the tokens from a JSON file, and follows it until Close. If a changed file is
// invalid, the previous tokens stay in force, and the error is logged. The format of the file is:
//
//	{"tokens": [{"subject": "billing", "groups": ["ops"], "sha256": "3b64…", "expires": "2031-01-01T00:00:00Z"}]}
func OpenTokens(file string, opts ...FollowOption) (*Tokens, error) {
	t := new(Tokens)
	f, err := open([]string{file}, opts, func(contents [][]byte) error { return t.load(file, contents[0]) })
	if err != nil {
		return nil, err
	}
	t.file = f
	return t, nil
}

// load applies the tokens in a file.
func (t *Tokens) load(file string, b []byte) error {
	var in struct {
		Tokens []Grant `json:"tokens"`
	}
	if err := decode(file, b, &in); err != nil {
		return err
	}
	if err := t.Set(in.Tokens...); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Set replaces all tokens. Connections whose token was removed, has expired, or grants another
// subject or other groups are closed within about a second.
func (t *Tokens) Set(list ...Grant) error {
	g := &grants{list: slices.Clone(list)}
	for i, grant := range list {
		sum, err := hex.DecodeString(grant.SHA256)
		switch {
		case grant.Subject == "":
			return fmt.Errorf("auth: tokens[%d] has no subject", i)
		case err != nil || len(sum) != sha256.Size:
			return fmt.Errorf("auth: tokens[%d], of %q: sha256 is not a SHA-256 in 64 hexadecimal digits: make it with auth.Digest", i, grant.Subject)
		}
		g.list[i].Groups = slices.Clone(grant.Groups)
		g.sums = append(g.sums, [sha256.Size]byte(sum))
	}
	t.now.Store(g)
	return nil
}

// Close stops following the file. The tokens stay in force.
func (t *Tokens) Close() error { return t.file.close() }

var (
	errToken   = errors.New("auth: the token is unknown")
	errExpired = errors.New("auth: the token has expired")
)

// Authenticate implements [anser.Authenticator].
func (t *Tokens) Authenticate(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
	if l.Scheme != SchemeToken {
		return nil, anser.ErrOtherScheme
	}
	sum := sha256.Sum256(l.Data)
	g := t.now.Load()
	grant := g.find(&sum)
	switch {
	case grant == nil:
		return nil, errToken
	case grant.over():
		return nil, errExpired
	}
	return &anser.Identity{Subject: grant.Subject, Groups: grant.Groups, Expires: grant.Expires, Revoked: t.revoked(g, grant, sum)}, nil
}

// find compares with all tokens, so that its duration reveals nothing.
func (g *grants) find(sum *[sha256.Size]byte) (found *Grant) {
	for i := range g.sums {
		if subtle.ConstantTimeCompare(g.sums[i][:], sum[:]) == 1 {
			found = &g.list[i]
		}
	}
	return found
}

func (g *Grant) over() bool { return !g.Expires.IsZero() && time.Now().After(g.Expires) }

// revoked returns a function that reports whether a grant in seen was removed.
func (t *Tokens) revoked(seen *grants, grant *Grant, sum [sha256.Size]byte) func() bool {
	var last atomic.Pointer[grants] // the latest set in which the grant was valid
	last.Store(seen)
	return func() bool {
		g := t.now.Load()
		if g == last.Load() {
			return false
		}
		now := g.find(&sum)
		if now == nil || now.over() || now.Subject != grant.Subject || !slices.Equal(now.Groups, grant.Groups) {
			return true
		}
		last.Store(g)
		return false
	}
}

// Token makes a client authenticate with a token. It is sent to the server in plain text: see
// [anser.Credentials] for the conditions.
func Token(token string) anser.DialOption {
	return anser.Credentials(func(context.Context) (anser.Credential, error) { return tokenOf(token) })
}

// refresh is the interval at which a client reads the file again.
const refresh = 30 * time.Second

// TokenFile makes a client authenticate with the token in a file, without surrounding white space.
// The file is read per connection, and at most every half a minute: existing connections then send
// the new token, so that the old one can be removed after a minute without failing a call.
func TokenFile(name string) anser.DialOption {
	return anser.Credentials(func(context.Context) (anser.Credential, error) {
		b, err := os.ReadFile(name)
		if err != nil {
			return anser.Credential{}, err
		}
		c, err := tokenOf(strings.TrimSpace(string(b)))
		c.Expires = time.Now().Add(refresh)
		return c, err
	})
}

func tokenOf(token string) (anser.Credential, error) {
	if token == "" {
		return anser.Credential{}, errors.New("auth: the token is empty")
	}
	return anser.Credential{Scheme: SchemeToken, Data: []byte(token)}, nil
}
