package auth_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/internal/authority"
)

// FuzzSigned tries signed credentials. Only a valid one is accepted, once and within its time.
func FuzzSigned(f *testing.F) {
	now := time.Now().Unix()
	f.Add("k", uint64(1), int64(0), []byte{1}, []byte("x"))
	f.Add("", uint64(1), int64(59), []byte{}, bytes.Repeat([]byte{7}, 60))
	f.Add(strings.Repeat("i", 255), uint64(2), int64(-3600), bytes.Repeat([]byte{0}, 60), []byte(nil))
	f.Add(strings.Repeat("i", 256), uint64(2), -now, []byte{0, 0, 1}, []byte(nil))
	f.Add("k\x00", ^uint64(0), int64(-1<<63), []byte("mask"), bytes.Repeat([]byte{0xff}, 57))
	secret := auth.NewSecret()
	f.Fuzz(func(t *testing.T, id string, nonce uint64, offset int64, mask, raw []byte) {
		key := auth.Key{ID: id, Secret: secret, Subject: "ann"}
		s, err := auth.NewSigned(key)
		if good := len(id) > 0 && len(id) <= 255; good != (err == nil) {
			t.Fatalf("a key whose id has %d bytes: %v", len(id), err)
		}
		if err != nil {
			return
		}
		if login(s, bytes.Clone(raw)) == nil {
			t.Fatalf("%x is taken without the secret", raw)
		}
		at := time.Unix(time.Now().Unix()+offset, 0)
		good := signature(t, key, at, nonce)
		bad := bytes.Clone(good)
		for i := range min(len(bad), len(mask)) {
			bad[i] ^= mask[i]
		}
		if !bytes.Equal(bad, good) && login(s, bad) == nil {
			t.Fatalf("%x is taken in place of %x", bad, good)
		}
		const margin = 10 // seconds of tolerance for a slow machine
		away := max(offset, -offset, 0)
		if offset == -1<<63 {
			away = 1 << 62
		}
		window := int64(auth.ClockWindow / time.Second)
		err = login(s, bytes.Clone(good))
		switch {
		case away > window+margin && err == nil:
			t.Fatalf("a signature is taken that was made %d s from now", offset)
		case away < window-margin && err != nil:
			t.Fatalf("a good signature is refused: %v", err)
		}
		if login(s, bytes.Clone(good)) == nil {
			t.Fatal("a signature is taken twice")
		}
	})
}

// allows is the definition of Rules, implemented again.
func allows(r auth.Rules, subject, group, method string) bool {
	prefixed := func(pattern, name string) bool {
		n := len(pattern) - 1
		return pattern[n] == '*' && len(name) >= n && name[:n] == pattern[:n]
	}
	about := func(rule auth.Rule) bool {
		who, what := slices.Contains(rule.Groups, group), false
		for _, s := range rule.Subjects {
			who = who || s == subject || prefixed(s, subject)
		}
		for _, m := range rule.Methods {
			dot := strings.LastIndex(method, ".")
			what = what || m == "*" || m == method || dot > -1 && m == method[:dot]+".*"
		}
		return who && what
	}
	return !slices.ContainsFunc(r.Deny, about) && slices.ContainsFunc(r.Allow, about)
}

// FuzzPolicy parses documents. An accepted one decides according to its rules, also after it was
// encoded and parsed again.
func FuzzPolicy(f *testing.F) {
	for _, doc := range []string{
		`{"allow": [{"groups": ["ops"], "methods": ["*"]}, {"subjects": ["ann"], "methods": ["Arith.*"]}], "deny": [{"subjects": ["*"], "methods": ["Arith.Reset"]}]}`,
		`{"allow": [{"subjects": ["spiffe://a/*", "ann"], "groups": ["x"], "methods": ["a.b.C.d"]}]}`,
		`{}`, `{"allow": null}`, `{"allow": [{}]}`, `{"allow": [{"subjects": ["*"], "methods": [".", "a.", ".a", "*.*"]}]}`, `[]`, `{"allow": []} x`,
	} {
		f.Add([]byte(doc), "ann", "ops", "Arith.Mul")
		f.Add([]byte(doc), "spiffe://a/b", "", "a.b.C.d")
	}
	f.Fuzz(func(t *testing.T, doc []byte, subject, group, method string) {
		p, err := auth.ParsePolicy(doc)
		if err != nil {
			return
		}
		var rules auth.Rules
		if err := json.Unmarshal(doc, &rules); err != nil {
			t.Fatalf("what is taken is not a document: %v", err)
		}
		written, err := json.Marshal(rules)
		if err != nil {
			t.Fatal(err)
		}
		again, err := auth.ParsePolicy(written)
		if err != nil {
			t.Fatalf("what was taken is refused when it is written as %s: %v", written, err)
		}
		if p.Allows(nil, method) {
			t.Fatal("a client without an identity is allowed something")
		}
		id := &anser.Identity{Subject: subject, Groups: []string{group}}
		want := allows(rules, subject, group, method)
		if a, b := p.Allows(id, method), again.Allows(id, method); a != want || b != want {
			t.Fatalf("%t, and %t when written and read again; want %t", a, b, want)
		}
	})
}

// FuzzTokens parses documents. An accepted one contains exactly its tokens.
func FuzzTokens(f *testing.F) {
	one := auth.Digest("one")
	for _, doc := range []string{
		`{"tokens": [{"subject": "ann", "groups": ["ops"], "sha256": "` + one + `", "expires": "2031-01-01T00:00:00Z"}]}`,
		`{"tokens": [{"subject": "ann", "sha256": "` + strings.ToUpper(one) + `"}, {"subject": "bob", "sha256": "` + one + `", "expires": "2001-01-01T00:00:00+01:00"}]}`,
		`{"tokens": [{"subject": "", "sha256": "` + one + `"}]}`, `{"tokens": [{"subject": "a", "sha256": "00"}]}`, `{"tokens": {}}`, `{}`,
	} {
		f.Add([]byte(doc), "one")
		f.Add([]byte(doc), "two")
	}
	f.Fuzz(func(t *testing.T, doc []byte, token string) {
		tokens, err := auth.ParseTokens(doc)
		if err != nil {
			return
		}
		var in struct {
			Tokens []auth.Grant `json:"tokens"`
		}
		if err := json.Unmarshal(doc, &in); err != nil {
			t.Fatalf("what is taken is not a document: %v", err)
		}
		var want *auth.Grant
		for i, g := range in.Tokens {
			digest, err := hex.DecodeString(g.SHA256)
			if err != nil || g.Subject == "" {
				t.Fatalf("%+v is taken: %v", g, err)
			}
			if [sha256.Size]byte(digest) == sha256.Sum256([]byte(token)) {
				want = &in.Tokens[i]
			}
		}
		if want != nil && !want.Expires.IsZero() && time.Until(want.Expires).Abs() < time.Minute {
			return
		}
		id, err := tokens.Authenticate(context.Background(), &anser.AuthRequest{Scheme: auth.SchemeToken, Data: []byte(token)})
		good := want != nil && (want.Expires.IsZero() || time.Now().Before(want.Expires))
		if good != (err == nil) || good && (id.Subject != want.Subject || !id.Expires.Equal(want.Expires) || id.Revoked()) {
			t.Fatalf("%+v, %v; want that of %+v", id, err, want)
		}
	})
}

// FuzzKeys parses documents. With an accepted one every key authenticates its subject.
func FuzzKeys(f *testing.F) {
	for _, doc := range []string{
		`{"keys": [{"id": "a", "secret": "` + strings.Repeat("9f", 32) + `", "subject": "ann", "groups": ["ops"]}, {"id": "b", "secret": "` + strings.Repeat("0A", 16) + `", "subject": "bob"}]}`,
		`{"keys": [{"id": "a", "secret": "9f", "subject": "ann"}]}`, `{"keys": [{"id": "\u0000", "secret": "` + strings.Repeat("00", 16) + `", "subject": "\ud800"}]}`, `{"keys": [{}]}`, `{}`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		s, err := auth.ParseKeys(doc)
		if err != nil {
			return
		}
		var in struct {
			Keys []auth.Key `json:"keys"`
		}
		if err := json.Unmarshal(doc, &in); err != nil {
			t.Fatalf("what is taken is not a document: %v", err)
		}
		for i, k := range in.Keys {
			id, err := s.Authenticate(context.Background(), &anser.AuthRequest{Scheme: auth.SchemeSigned, Data: signature(t, k, time.Now(), uint64(i))})
			if err != nil || id.Subject != k.Subject || id.Revoked() {
				t.Fatalf("keys[%d]: %+v, %v", i, id, err)
			}
		}
	})
}

// FuzzRevocations parses files of revocation lists: arbitrary bytes, and a valid list with changed
// bytes. A changed list never makes a revoked certificate valid, unless it no longer belongs to
// its issuer.
func FuzzRevocations(f *testing.F) {
	a := authority.New("one")
	list := a.Revoke(1, 7)
	block, _ := pem.Decode(list)
	f.Add(list, []byte{})
	f.Add(block.Bytes, []byte{0, 10, 1})
	f.Add([]byte("-----BEGIN X509 CRL-----\n-----END X509 CRL-----\n"), []byte{0, 90, 0xff, 0, 91, 1})
	f.Add(append(slices.Clone(list), list...), []byte{0, 120, 3})
	login := func(serial int64) *anser.AuthRequest {
		cert := a.Issue(authority.Named("ann"), authority.Numbered(serial))
		leaf, err := x509.ParseCertificate(cert.Certificate[0])
		if err != nil {
			f.Fatal(err)
		}
		chains, err := leaf.Verify(x509.VerifyOptions{Roots: a.Pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err != nil {
			f.Fatal(err)
		}
		return &anser.AuthRequest{Scheme: anser.SchemeTLS, Peer: anser.Peer{TLS: &tls.ConnectionState{VerifiedChains: chains}}}
	}
	gone, good := login(7), login(8)
	original, err := x509.ParseRevocationList(block.Bytes)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw, edits []byte) {
		if c, err := auth.ParseRevocations(raw); err == nil {
			c.Authenticate(context.Background(), gone) // any result is correct for arbitrary bytes
		}
		der := slices.Clone(block.Bytes)
		for ; len(edits) >= 3; edits = edits[3:] {
			der[(int(edits[0])<<8|int(edits[1]))%len(der)] ^= edits[2]
		}
		c, err := auth.ParseRevocations(der)
		if err != nil {
			if bytes.Equal(der, block.Bytes) {
				t.Fatal(err)
			}
			return
		}
		now, err := x509.ParseRevocationList(der)
		if err != nil {
			t.Fatalf("what is taken is not a list: %v", err)
		}
		if !bytes.Equal(now.RawIssuer, original.RawIssuer) {
			return // it belongs to another issuer
		}
		if id, err := c.Authenticate(context.Background(), gone); err == nil {
			t.Fatalf("a revoked certificate is good as %s", id.Subject)
		} else if errors.Is(err, anser.ErrOtherScheme) {
			t.Fatal(err)
		}
		changed := !bytes.Equal(now.RawTBSRevocationList, original.RawTBSRevocationList)
		if id, err := c.Authenticate(context.Background(), good); changed && err == nil {
			t.Fatalf("the list was changed, and %s is good by it", id.Subject)
		}
	})
}
