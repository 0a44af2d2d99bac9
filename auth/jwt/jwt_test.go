package jwt_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	lib "github.com/golang-jwt/jwt/v5"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/auth/jwt"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// issuer has a key of each type.
type issuer struct {
	rsa *rsa.PrivateKey
	ec  *ecdsa.PrivateKey
	ed  ed25519.PrivateKey
	mac []byte
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	r, err1 := rsa.GenerateKey(rand.Reader, 2048)
	e, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, d, err3 := ed25519.GenerateKey(rand.Reader)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	mac := make([]byte, 32)
	rand.Read(mac)
	return &issuer{r, e, d, mac}
}

func (i *issuer) keys() jwt.Keys {
	return jwt.Keys{{ID: "r", Key: &i.rsa.PublicKey}, {ID: "e", Key: &i.ec.PublicKey}, {ID: "d", Key: i.ed.Public().(ed25519.PublicKey)}, {ID: "m", Key: i.mac}}
}

// good returns the claims of a valid token.
func good() lib.MapClaims {
	now := time.Now()
	return lib.MapClaims{
		"iss": "me", "aud": []string{"other", "shop"}, "sub": "ann", "groups": []string{"ops", "x"},
		"exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "nbf": now.Unix(),
	}
}

func with(changes lib.MapClaims) lib.MapClaims {
	c := good()
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func token(t *testing.T, m lib.SigningMethod, kid string, key any, claims lib.MapClaims) string {
	t.Helper()
	tok := lib.NewWithClaims(m, claims)
	if kid != "" {
		tok.Header["kid"] = kid
	}
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTokens(t *testing.T) {
	i, other := newIssuer(t), newIssuer(t)
	v, err := jwt.New("me", "shop", i.keys())
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&i.rsa.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	past, future := time.Now().Add(-time.Minute).Unix(), time.Now().Add(time.Minute).Unix()
	es := func(c lib.MapClaims) string { return token(t, lib.SigningMethodES256, "e", i.ec, c) }
	whole := es(good())
	for name, c := range map[string]struct {
		token string
		ok    bool
	}{
		"RS256": {token(t, lib.SigningMethodRS256, "r", i.rsa, good()), true},
		"PS512": {token(t, lib.SigningMethodPS512, "r", i.rsa, good()), true},
		"ES256": {whole, true},
		"EdDSA": {token(t, lib.SigningMethodEdDSA, "d", i.ed, good()), true},
		"HS256": {token(t, lib.SigningMethodHS256, "m", i.mac, good()), true},

		"none":                      {token(t, lib.SigningMethodNone, "e", lib.UnsafeAllowNoneSignatureType, good()), false},
		"none without a key":        {token(t, lib.SigningMethodNone, "", lib.UnsafeAllowNoneSignatureType, good()), false},
		"public key as a secret":    {token(t, lib.SigningMethodHS256, "r", public, good()), false},
		"public key in DER":         {token(t, lib.SigningMethodHS256, "r", der, good()), false},
		"secret under another key":  {token(t, lib.SigningMethodHS256, "e", i.mac, good()), false},
		"other issuer's key":        {token(t, lib.SigningMethodES256, "e", other.ec, good()), false},
		"other issuer's secret":     {token(t, lib.SigningMethodHS256, "m", other.mac, good()), false},
		"key of another type":       {token(t, lib.SigningMethodES256, "r", i.ec, good()), false},
		"unknown key":               {token(t, lib.SigningMethodES256, "e2", i.ec, good()), false},
		"no key named":              {token(t, lib.SigningMethodES256, "", i.ec, good()), false},
		"expired":                   {es(with(lib.MapClaims{"exp": past})), false},
		"expired within the leeway": {es(with(lib.MapClaims{"exp": time.Now().Add(-5 * time.Second).Unix()})), true},
		"no end":                    {es(with(lib.MapClaims{"exp": nil})), false},
		"end is a text":             {es(with(lib.MapClaims{"exp": "never"})), false},
		"not yet":                   {es(with(lib.MapClaims{"nbf": future})), false},
		"made in the future":        {es(with(lib.MapClaims{"iat": future})), false},
		"for others":                {es(with(lib.MapClaims{"aud": "other"})), false},
		"for nobody":                {es(with(lib.MapClaims{"aud": nil})), false},
		"of another issuer":         {es(with(lib.MapClaims{"iss": "you"})), false},
		"of no issuer":              {es(with(lib.MapClaims{"iss": nil})), false},
		"without a subject":         {es(with(lib.MapClaims{"sub": nil})), false},
		"subject is a number":       {es(with(lib.MapClaims{"sub": 7})), false},
		"cut":                       {whole[:len(whole)-2], false},
		"signature of nothing":      {whole[:strings.LastIndexByte(whole, '.')+1], false},
		"claims changed":            {strings.Replace(whole, ".ey", ".ez", 1), false},
		"no token":                  {"a.b.c", false},
		"empty":                     {"..", false},
	} {
		id, err := v.Authenticate(t.Context(), &anser.AuthRequest{Scheme: auth.SchemeToken, Data: []byte(c.token)})
		if (err == nil) != c.ok || errors.Is(err, anser.ErrOtherScheme) {
			t.Errorf("%s: %+v, %v", name, id, err)
			continue
		}
		if err != nil && len(c.token) > 9 && strings.Contains(err.Error(), c.token[len(c.token)-9:]) {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
		if c.ok && (id.Subject != "ann" || fmt.Sprint(id.Groups) != "[ops x]" || id.Attributes["issuer"] != "me" || id.Expires.IsZero() || id.Revoked()) {
			t.Errorf("%s: %+v", name, id)
		}
	}
	for _, l := range []*anser.AuthRequest{{Scheme: auth.SchemeToken, Data: []byte("abc")}, {Scheme: "other", Data: []byte(whole)}} {
		if _, err := v.Authenticate(t.Context(), l); !errors.Is(err, anser.ErrOtherScheme) {
			t.Error(err)
		}
	}
	// A single key needs no name.
	alone, err := jwt.New("me", "shop", jwt.Keys{{Key: &i.ec.PublicKey}})
	if err != nil {
		t.Fatal(err)
	}
	for _, kid := range []string{"", "e"} {
		if _, err := alone.Authenticate(t.Context(), &anser.AuthRequest{Scheme: auth.SchemeToken, Data: []byte(token(t, lib.SigningMethodES256, kid, i.ec, good()))}); err != nil {
			t.Error(kid, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err == nil {
		if _, err := jwt.New("me", "shop", jwt.Keys{{ID: "r", Key: &small.PublicKey}}); err == nil || !strings.Contains(err.Error(), "less than 2,048 bits") {
			t.Error(err)
		}
	}
	i := newIssuer(t)
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for want, make := range map[string]func() (*jwt.Verifier, error){
		"an issuer and an audience are needed": func() (*jwt.Verifier, error) { return jwt.New("me", "", i.keys()) },
		"want from 0 to an hour":               func() (*jwt.Verifier, error) { return jwt.New("me", "shop", i.keys(), jwt.Leeway(-1)) },
		"the name of the claim is empty":       func() (*jwt.Verifier, error) { return jwt.New("me", "shop", i.keys(), jwt.Groups("")) },
		"a key of type *rsa.PrivateKey":        func() (*jwt.Verifier, error) { return jwt.New("me", "shop", jwt.Keys{{Key: i.rsa}}) },
		"the secret has 3 bytes":               func() (*jwt.Verifier, error) { return jwt.New("me", "shop", jwt.Keys{{Key: []byte("abc")}}) },
		"the curve of the key is none of":      func() (*jwt.Verifier, error) { return jwt.New("me", "shop", jwt.Keys{{Key: &p224.PublicKey}}) },
		"the Ed25519 key has 1 bytes":          func() (*jwt.Verifier, error) { return jwt.New("me", "shop", jwt.Keys{{Key: ed25519.PublicKey{1}}}) },
		"the key is nil":                       func() (*jwt.Verifier, error) { return jwt.New("me", "shop", jwt.Keys{{Key: (*ecdsa.PublicKey)(nil)}}) },
		"keys[1] has no id":                    func() (*jwt.Verifier, error) { return jwt.New("me", "shop", append(i.keys()[:1], jwt.Key{Key: i.mac})) },
		"keys[1] has the id \"r\"":             func() (*jwt.Verifier, error) { return jwt.New("me", "shop", append(i.keys()[:1], i.keys()[0])) },
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	if k := fmt.Sprintf("%v %+v %#v %x", i.keys(), i.keys()[3], &i.keys()[3], i.keys()[3]); strings.Contains(k, fmt.Sprintf("%x", i.mac)) || strings.Contains(k, fmt.Sprint(i.mac)) {
		t.Error("a key prints its secret")
	}
}

// Over real connections: tokens are renewed before they expire, and removing a key closes its
// connections.
func TestConnections(t *testing.T) {
	i := newIssuer(t)
	v, err := jwt.New("me", "shop", i.keys(), jwt.Leeway(0))
	if err != nil {
		t.Fatal(err)
	}
	silent := anser.Logger(slog.New(slog.DiscardHandler))
	s := anser.NewServer(silent, anser.Authenticate(v))
	anser.Handle(s, "Who.Until", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		id := anser.IdentityFrom(ctx)
		b := fmt.Appendf(nil, "%s %s", id.Subject, id.Expires.UTC().Format(time.RFC3339))
		return &b, nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() { s.Close(); <-served }()
	var made atomic.Int64
	c, err := anser.Dial(l.Addr().String(), silent, anser.NoSnapshot(), anser.Conns(1), jwt.From(func(context.Context) (string, error) {
		life := 12 * time.Second
		if made.Add(1) > 1 {
			life = time.Hour // the connection lasts until the key is removed
		}
		return token(t, lib.SigningMethodES256, "e", i.ec, with(lib.MapClaims{"exp": time.Now().Add(life).Unix()})), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	until := func() (string, error) {
		out, err := anser.Call[[]byte](context.Background(), c, "Who.Until", new([]byte))
		if err != nil {
			return "", err
		}
		return string(*out), nil
	}
	first, err := until()
	if err != nil || !strings.HasPrefix(first, "ann ") {
		t.Fatal(first, err)
	}
	eventually(t, "the token is renewed on the connection", func() bool { now, err := until(); return err == nil && now != first })
	if err := v.SetKeys(i.keys()[:1]...); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connection is closed", func() bool { return s.Stats().Unauthenticated["revoked"] > 0 })
	eventually(t, "its client is refused", func() bool { _, err := until(); return anser.CodeOf(err) == anser.Unauthenticated })
	bad, err := anser.Dial(l.Addr().String(), silent, anser.NoSnapshot(), jwt.From(func(context.Context) (string, error) { return "open-sesame", nil }))
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	_, err = anser.Call[[]byte](context.Background(), bad, "Who.Until", new([]byte), anser.WithFailMode(anser.Failfast))
	if err == nil || !strings.Contains(err.Error(), "did not return a JSON Web Token") || strings.Contains(err.Error(), "sesame") {
		t.Error(err)
	}
	if _, err := anser.Dial("127.0.0.1:1", jwt.From(nil)); err == nil {
		t.Error("no source is not a mistake")
	}
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
