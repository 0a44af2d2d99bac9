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

// SchemeToken is the scheme of tokens, also of those of package auth/jwt.
const SchemeToken = "token"

// Grant says whom a token stands for. The token itself is not in it.
type Grant struct {
	Subject string   `json:"subject"`
	Groups  []string `json:"groups,omitempty"`
	// SHA256 is the digest of the token, in 64 hexadecimal digits: see [Digest].
	SHA256  string    `json:"sha256"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
}

// NewToken makes a token that nobody guesses: 26 letters and digits.
func NewToken() string { return rand.Text() }

// Digest returns the SHA-256 of a token for [Grant]. In a shell it is: printf %s "$TOKEN" | sha256sum. A
// digest does not protect a token that can be guessed: make tokens with [NewToken].
func Digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Tokens knows clients by their tokens. It keeps digests only. All methods are safe for concurrent use.
type Tokens struct {
	now  atomic.Pointer[grants]
	file *follower
}

// grants is what is in use; it is not changed.
type grants struct {
	list []Grant
	sums [][sha256.Size]byte
}

// NewTokens returns an authenticator for these tokens. Without any it lets nobody in.
func NewTokens(list ...Grant) (*Tokens, error) {
	t := new(Tokens)
	if err := t.Set(list...); err != nil {
		return nil, err
	}
	return t, nil
}

// OpenTokens reads the tokens from a JSON file, and follows it until Close. A file that cannot be used leaves
// what was in it before in place, and the log says so. The file looks like this:
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

// load takes over the tokens in a file.
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

// Set takes the place of all tokens. Connections whose token is gone, has ended, or stands for another subject or other
// groups are closed within about a second.
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

// Close ends the following of a file. The tokens stay.
func (t *Tokens) Close() error { return t.file.close() }

var (
	errToken   = errors.New("auth: the token is not known")
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

// find compares with all, so that the time it takes says nothing.
func (g *grants) find(sum *[sha256.Size]byte) (found *Grant) {
	for i := range g.sums {
		if subtle.ConstantTimeCompare(g.sums[i][:], sum[:]) == 1 {
			found = &g.list[i]
		}
	}
	return found
}

func (g *Grant) over() bool { return !g.Expires.IsZero() && time.Now().After(g.Expires) }

// revoked returns what tells whether a grant was taken back that was found in seen.
func (t *Tokens) revoked(seen *grants, grant *Grant, sum [sha256.Size]byte) func() bool {
	var last atomic.Pointer[grants] // in which the grant was good
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

// Token has a client show a token. It is sent to the server as it is: see [anser.Credentials] for where.
func Token(token string) anser.DialOption {
	return anser.Credentials(func(context.Context) (anser.Credential, error) { return tokenOf(token) })
}

// refresh is how often a client reads a file again.
const refresh = 30 * time.Second

// TokenFile has a client show the token that is in a file, without white space around it. The file is read for
// each connection, and again every half a minute at most: connections that stand then show the new token, so that the
// old one can be taken back after a minute without failing a call.
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
