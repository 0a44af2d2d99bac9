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

// The layout of a signed credential: the MAC, the time, the nonce, and the ID of the key.
const (
	macSize   = sha256.Size
	timeSize  = 8 // seconds since 1970, little-endian
	nonceSize = 16
	signedFor = "anser signed credential 1\n" // prefix of the signed data

	maxKeyID  = 255
	minSecret = 16

	// ClockWindow is the tolerated difference between the clocks of a client and a server.
	ClockWindow = time.Minute
)

// Key is an access key with its secret, which both sides know. Its methods never print the secret.
type Key struct {
	ID      string   `json:"id"`
	Secret  string   `json:"secret"` // hexadecimal digits of at least 16 bytes: see NewSecret
	Subject string   `json:"subject"`
	Groups  []string `json:"groups,omitempty"`
}

// String returns the key without its secret.
func (k Key) String() string { return fmt.Sprintf("key %q of %q [hidden]", k.ID, k.Subject) }

// GoString is like String.
func (k Key) GoString() string { return k.String() }

// Format hides the secret with every verb.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }

// LogValue hides the secret.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// NewSecret returns a secret of 32 random bytes, in hexadecimal digits.
func NewSecret() string {
	var b [32]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Signed authenticates clients by a secret that is never sent: a client uses it to sign the time
// and a random number (HMAC-SHA256). Each signature is accepted only once. A server remembers
// signatures for at least twice [ClockWindow], up to [MaxLoginsPerKey] logins per key, and then
// refuses further ones of that key alone; [Signed.Stats] counts them. Servers do not share this
// memory: if several have the same keys, only TLS prevents an attacker from replaying a signature
// at another server.
//
// All methods are safe for concurrent use.
type Signed struct {
	now  atomic.Pointer[keys]
	file *follower

	notValid, wrongClock atomic.Int64

	mu     sync.Mutex // guards the fields below
	logins map[string]*logins
	swept  time.Time // last time that old logins were removed
}

// keys is the set in use; it is immutable.
type keys struct{ by map[string]*key }

type key struct {
	Key
	secret []byte
}

// NewSigned returns an authenticator for these keys. Without any it rejects all clients.
func NewSigned(list ...Key) (*Signed, error) {
	s := new(Signed)
	if err := s.Set(list...); err != nil {
		return nil, err
	}
	return s, nil
}

// OpenSigned reads the keys from a JSON file, and follows it until Close. If a changed file is
// invalid, the previous keys stay in force, and the error is logged. The file contains secrets:
// restrict its permissions. The format of the file is:
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

// load applies the keys in a file.
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

// Set replaces all keys. Connections whose key was removed or has changed are closed within about
// a second.
func (s *Signed) Set(list ...Key) error {
	next := &keys{make(map[string]*key)}
	for i, k := range list {
		secret, err := hex.DecodeString(k.Secret)
		switch {
		case k.ID == "" || len(k.ID) > maxKeyID:
			return fmt.Errorf("auth: keys[%d] has an id of %d bytes, want 1 to %d", i, len(k.ID), maxKeyID)
		case next.by[k.ID] != nil:
			return fmt.Errorf("auth: keys[%d] has the id %q, which is there twice", i, k.ID)
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

// Close stops following the file. The keys stay in force.
func (s *Signed) Close() error { return s.file.close() }

var (
	errSignature = errors.New("auth: the signature is not valid, or the key is unknown")
	errClock     = fmt.Errorf("auth: the signature was made more than %v before or after the server's time: are the clocks right?", ClockWindow)
	errReplayed  = errors.New("auth: the signature was used before")
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

// revoked returns a function that reports whether the key was removed or changed.
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

// Sign makes a client authenticate with a signature by the secret of an access key, in hexadecimal
// digits as in [Key]. Each connection uses a new signature. The secret is not sent.
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
