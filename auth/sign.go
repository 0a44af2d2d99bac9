package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
)

// SchemeSigned is the scheme of signatures with a shared secret.
const SchemeSigned = "hmac-sha256"

// The layout of a signed credential: the MAC, the time, the nonce, and the id of the key.
const (
	macSize   = sha256.Size
	timeSize  = 8 // seconds since 1970, little-endian
	nonceSize = 16
	signedFor = "anser signed credential 1\n" // what is signed begins with it

	maxKeyID  = 255
	minSecret = 16

	// ClockWindow is how far the clocks of a client and a server may be apart.
	ClockWindow = time.Minute
)

// Key is an access key with its secret, which both sides have. It never prints its secret.
type Key struct {
	ID      string   `json:"id"`
	Secret  string   `json:"secret"` // in hexadecimal digits, at least 16 bytes: see NewSecret
	Subject string   `json:"subject"`
	Groups  []string `json:"groups,omitempty"`
}

// String hides the secret.
func (k Key) String() string { return fmt.Sprintf("key %q of %q [hidden]", k.ID, k.Subject) }

// GoString is String.
func (k Key) GoString() string { return k.String() }

// Format hides the secret whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }

// LogValue hides the secret.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// NewSecret makes a secret of 32 random bytes, in hexadecimal digits.
func NewSecret() string {
	var b [32]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Signed knows clients by a secret that does not travel: a client signs the time and a random number with it
// (HMAC-SHA256). What was shown once is not taken again. A server remembers for at least twice [ClockWindow]
// what it has seen, up to [MaxLoginsPerKey] logins of each key, and then refuses further ones of that key alone; [Signed.Stats]
// counts them. Another server does not know it, so where several have the
// same keys only TLS keeps others from showing there what they have seen here.
//
// All methods are safe for concurrent use.
type Signed struct {
	now  atomic.Pointer[keys]
	file *follower

	notValid, wrongClock atomic.Int64

	mu     sync.Mutex // guards what follows
	logins map[string]*logins
	swept  time.Time // when logins was last rid of what is old
}

// keys is what is in use; it is not changed.
type keys struct{ by map[string]*key }

type key struct {
	Key
	secret []byte
}

// NewSigned returns an authenticator for these keys. Without any it lets nobody in.
func NewSigned(list ...Key) (*Signed, error) {
	s := new(Signed)
	if err := s.Set(list...); err != nil {
		return nil, err
	}
	return s, nil
}

// OpenSigned reads the keys from a JSON file, and follows it until Close. A file that cannot be used leaves what
// was in it before in place, and the log says so. The file holds secrets: let nobody else read it. It looks like this:
//
//	{"keys": [{"id": "billing-1", "secret": "9f86…", "subject": "billing", "groups": ["ops"]}]}
func OpenSigned(file string, opts ...FollowOption) (*Signed, error) {
	s := new(Signed)
	f, err := open([]string{file}, opts, func(contents [][]byte) error { return s.load(file, contents[0]) })
	if err != nil {
		return nil, err
	}
	s.file = f
	return s, nil
}

// load takes over the keys in a file.
func (s *Signed) load(file string, b []byte) error {
	var in struct {
		Keys []Key `json:"keys"`
	}
	if err := decode(file, b, &in); err != nil {
		return err
	}
	if err := s.Set(in.Keys...); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Set takes the place of all keys. Connections whose key is gone or has changed are closed within about a second.
func (s *Signed) Set(list ...Key) error {
	next := &keys{make(map[string]*key)}
	for i, k := range list {
		secret, err := hex.DecodeString(k.Secret)
		switch {
		case k.ID == "" || len(k.ID) > maxKeyID:
			return fmt.Errorf("auth: keys[%d] has an id of %d bytes, want 1 to %d", i, len(k.ID), maxKeyID)
		case next.by[k.ID] != nil:
			return fmt.Errorf("auth: keys[%d] has the id %q, which is there already", i, k.ID)
		case k.Subject == "":
			return fmt.Errorf("auth: keys[%d], %q, has no subject", i, k.ID)
		case err != nil || len(secret) < minSecret:
			return fmt.Errorf("auth: keys[%d], %q: the secret is not one of at least %d bytes in hexadecimal digits: make it with auth.NewSecret", i, k.ID, minSecret)
		}
		k.Groups = slices.Clone(k.Groups)
		next.by[k.ID] = &key{k, secret}
	}
	s.now.Store(next)
	return nil
}

// Close ends the following of a file. The keys stay.
func (s *Signed) Close() error { return s.file.close() }

var (
	errSignature = errors.New("auth: the signature is not valid, or the key is not known")
	errClock     = fmt.Errorf("auth: the signature was made more than %v before or after the time here: are the clocks right?", ClockWindow)
	errReplayed  = errors.New("auth: the signature was shown before")
	errNoRoom    = fmt.Errorf("auth: more than %d signatures with one key within %v: use several keys", MaxLoginsPerKey, 2*ClockWindow)
	nobodysKey   = &key{secret: make([]byte, 32)}
)

// Authenticate implements [anser.Authenticator].
func (s *Signed) Authenticate(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
	if l.Scheme != SchemeSigned {
		return nil, anser.ErrOtherScheme
	}
	if len(l.Data) <= macSize+timeSize+nonceSize {
		s.notValid.Add(1)
		return nil, errSignature
	}
	mac, signed := [macSize]byte(l.Data), l.Data[macSize:]
	all := s.now.Load()
	k := all.by[string(signed[timeSize+nonceSize:])]
	known := k != nil
	if !known {
		k = nobodysKey // whose signature costs the same time
	}
	if !hmac.Equal(mac[:], sign(k.secret, signed)) || !known {
		s.notValid.Add(1)
		return nil, errSignature
	}
	now := time.Now()
	if at := time.Unix(int64(binary.LittleEndian.Uint64(signed)), 0); now.Sub(at).Abs() > ClockWindow {
		s.wrongClock.Add(1)
		return nil, errClock
	}
	if err := s.note(k.ID, mac, now); err != nil {
		return nil, err
	}
	return &anser.Identity{Subject: k.Subject, Groups: k.Groups, Attributes: map[string]string{"key": k.ID}, Revoked: s.revoked(all, k)}, nil
}

// revoked returns what tells whether the key was taken back or changed.
func (s *Signed) revoked(seen *keys, k *key) func() bool {
	var last atomic.Pointer[keys]
	last.Store(seen)
	return func() bool {
		all := s.now.Load()
		if all == last.Load() {
			return false
		}
		now := all.by[k.ID]
		if now == nil || now.Subject != k.Subject || !slices.Equal(now.Groups, k.Groups) || !hmac.Equal(now.secret, k.secret) {
			return true
		}
		last.Store(all)
		return false
	}
}

func sign(secret, signed []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(signedFor))
	h.Write(signed)
	return h.Sum(nil)
}

// Sign has a client show a signature with the secret of an access key, in hexadecimal digits as in [Key]. Each
// connection has another one. The secret is not sent.
func Sign(keyID, secret string) anser.DialOption {
	return anser.Credentials(func(context.Context) (anser.Credential, error) {
		raw, err := hex.DecodeString(secret)
		if err != nil || len(raw) < minSecret || keyID == "" || len(keyID) > maxKeyID {
			return anser.Credential{}, fmt.Errorf("auth.Sign: want an id of 1 to %d bytes and a secret of at least %d bytes in hexadecimal digits", maxKeyID, minSecret)
		}
		signed := binary.LittleEndian.AppendUint64(nil, uint64(time.Now().Unix()))
		var nonce [nonceSize]byte
		rand.Read(nonce[:])
		signed = append(append(signed, nonce[:]...), keyID...)
		return anser.Credential{Scheme: SchemeSigned, Data: append(sign(raw, signed), signed...)}, nil
	})
}
