package auth_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/internal/authority"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

var (
	silent = anser.Logger(slog.New(slog.DiscardHandler))
	quick  = []auth.FollowOption{auth.Poll(10 * time.Millisecond), auth.Logger(slog.New(slog.DiscardHandler))}
)

// serve runs a server on loopback that returns the caller's identity.
func serve(t *testing.T, opts ...anser.ServerOption) (*anser.Server, string) {
	t.Helper()
	s := anser.NewServer(append([]anser.ServerOption{silent}, opts...)...)
	anser.Handle(s, "Who.AmI", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		id := anser.IdentityFrom(ctx)
		b := fmt.Appendf(nil, "%s %v", id.Subject, id.Groups)
		return &b, nil
	})
	anser.Handle(s, "Who.Else", func(context.Context, *[]byte) (*[]byte, error) { return new([]byte), nil })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

func dial(t *testing.T, address string, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	c, err := anser.Dial(address, append([]anser.DialOption{silent, anser.NoSnapshot(), anser.Conns(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func who(c *anser.Client) (string, error) {
	out, err := anser.Call[[]byte](context.Background(), c, "Who.AmI", new([]byte))
	if err != nil {
		return "", err
	}
	return string(*out), nil
}

func refused(t *testing.T, c *anser.Client) {
	t.Helper()
	if out, err := who(c); anser.CodeOf(err) != anser.Unauthenticated {
		t.Errorf("%q, %v: want Unauthenticated", out, err)
	}
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// listening returns the option of a log, and a function that waits until the log reports unusable
// files.
func listening(t *testing.T) (log auth.FollowOption, refusal func()) {
	said := make(lines, 100)
	return auth.Logger(slog.New(slog.NewTextHandler(said, nil))), func() {
		t.Helper()
		for late := time.After(30 * time.Second); ; {
			select {
			case line := <-said:
				if strings.Contains(line, "cannot be used") {
					return
				}
			case <-late:
				t.Fatal("not within 30 s: the log says that the files cannot be used")
			}
		}
	}
}

// lines receives the lines of a log.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// write replaces a file atomically.
func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

func TestTokens(t *testing.T) {
	ann, old, gone := auth.NewToken(), auth.NewToken(), auth.NewToken()
	tokens, err := auth.NewTokens(
		auth.Grant{Subject: "ann", Groups: []string{"ops"}, SHA256: auth.Digest(ann), Expires: time.Now().Add(time.Hour)},
		auth.Grant{Subject: "old", SHA256: auth.Digest(old), Expires: time.Now().Add(-time.Second)},
		auth.Grant{Subject: "gone", SHA256: auth.Digest(gone)},
	)
	if err != nil {
		t.Fatal(err)
	}
	s, address := serve(t, anser.Authenticate(tokens))
	c := dial(t, address, auth.Token(ann))
	if out, err := who(c); out != "ann [ops]" || err != nil {
		t.Error(out, err)
	}
	for _, token := range []string{old, auth.NewToken(), ann[1:], ann + "x", strings.ToLower(ann)} {
		refused(t, dial(t, address, auth.Token(token)))
	}
	if _, err := who(dial(t, address, auth.Token(""), anser.WithFailMode(anser.Failfast))); err == nil || !strings.Contains(err.Error(), "the token is empty") {
		t.Error(err)
	}
	leaving := dial(t, address, auth.Token(gone))
	if _, err := who(leaving); err != nil {
		t.Fatal(err)
	}
	if err := tokens.Set(auth.Grant{Subject: "ann", Groups: []string{"ops"}, SHA256: auth.Digest(ann)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connection of a token that was taken back is closed", func() bool { return s.Stats().Unauthenticated["revoked"] == 1 })
	eventually(t, "its client is refused", func() bool { _, err := who(leaving); return anser.CodeOf(err) == anser.Unauthenticated })
	if out, err := who(c); out != "ann [ops]" || err != nil {
		t.Error(out, err)
	}
	tokens.Set()
	refusedAll := dial(t, address, auth.Token(ann))
	refused(t, refusedAll)
}

// Tokens change on both sides while calls are made, and none fails.
func TestTokenRotation(t *testing.T) {
	dir := t.TempDir()
	table, mine := filepath.Join(dir, "tokens.json"), filepath.Join(dir, "token")
	grant := func(tokens ...string) string {
		var list []string
		for _, token := range tokens {
			list = append(list, fmt.Sprintf(`{"subject": "ann", "sha256": %q}`, auth.Digest(token)))
		}
		return `{"tokens": [` + strings.Join(list, ", ") + `]}`
	}
	one, two := auth.NewToken(), auth.NewToken()
	write(t, table, grant(one))
	write(t, mine, one+"\n")
	log, refusal := listening(t)
	tokens, err := auth.OpenTokens(table, auth.Poll(10*time.Millisecond), log)
	if err != nil {
		t.Fatal(err)
	}
	defer tokens.Close()
	s, address := serve(t, anser.Authenticate(tokens))
	c := dial(t, address, auth.TokenFile(mine))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if out, err := who(c); out != "ann []" || err != nil {
				t.Errorf("%q, %v", out, err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	write(t, table, grant(one, two))
	eventually(t, "the server takes the new token", func() bool {
		_, err := who(dial(t, address, auth.Token(two)))
		return err == nil
	})
	write(t, mine, two)
	// A connection sends the new token within half a minute; a new connection at once.
	if _, err := who(dial(t, address, auth.TokenFile(mine))); err != nil {
		t.Error(err)
	}
	write(t, table, `{"tokens": [{"subjekt": "ann"}]}`) // an invalid file changes nothing
	refusal()
	if _, err := who(dial(t, address, auth.Token(one))); err != nil {
		t.Error(err)
	}
	close(stop)
	wg.Wait()
	if st := s.Stats(); st.Unauthenticated["revoked"] != 0 {
		t.Errorf("%+v", st.Unauthenticated)
	}
}

func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		f := filepath.Join(dir, "f")
		write(t, f, text)
		return f
	}
	digest := auth.Digest("x")
	for want, err := range map[string]error{
		"tokens[0] has no subject":                   second(auth.NewTokens(auth.Grant{SHA256: digest})),
		"tokens[1], of \"b\": sha256 is not":         second(auth.NewTokens(auth.Grant{Subject: "a", SHA256: digest}, auth.Grant{Subject: "b", SHA256: "open-sesame"})),
		"unknown field \"token\"":                    second(auth.OpenTokens(file(`{"tokens": [{"subject": "a", "token": "open-sesame"}]}`))),
		"data after the document":                    second(auth.OpenTokens(file(`{"tokens": []} {}`))),
		"no such file":                               second(auth.OpenTokens(filepath.Join(dir, "none"))),
		"want a time above 0":                        second(auth.OpenTokens(file(`{}`), auth.Poll(0))),
		"the logger is nil":                          second(auth.OpenTokens(file(`{}`), auth.Logger(nil))),
		"no file is given":                           second(auth.OpenMutualTLS(nil)),
		"is not a certificate revocation list":       second(auth.OpenMutualTLS([]string{file("x")})),
		"allow[0]: it has no subjects":               second(auth.NewPolicy(auth.Rules{Allow: []auth.Rule{{Methods: []string{"*"}}}})),
		"deny[0]: it has no methods":                 second(auth.NewPolicy(auth.Rules{Deny: []auth.Rule{{Groups: []string{"a"}}}})),
		"methods[0] is \"Arith.M*\"":                 second(auth.NewPolicy(auth.Rules{Allow: []auth.Rule{{Groups: []string{"a"}, Methods: []string{"Arith.M*"}}}})),
		"methods[1] is \"*.Mul\"":                    second(auth.NewPolicy(auth.Rules{Allow: []auth.Rule{{Groups: []string{"a"}, Methods: []string{"*", "*.Mul"}}}})),
		"subjects[0] is \"a*b\"":                     second(auth.NewPolicy(auth.Rules{Allow: []auth.Rule{{Subjects: []string{"a*b"}, Methods: []string{"*"}}}})),
		"groups[0] is \"*\"":                         second(auth.NewPolicy(auth.Rules{Allow: []auth.Rule{{Groups: []string{"*"}, Methods: []string{"*"}}}})),
		"unknown field \"method\"":                   second(auth.OpenPolicy(file(`{"allow": [{"subjects": ["*"], "method": "*"}]}`))),
		"allow.subjects cannot be a string":          second(auth.OpenPolicy(file(`{"allow": [{"subjects": "*"}]}`))),
		"keys[0] has an id of 0 bytes":               second(auth.NewSigned(auth.Key{})),
		"keys[0], \"a\", has no subject":             second(auth.NewSigned(auth.Key{ID: "a", Secret: auth.NewSecret()})),
		"the secret is not one of at least 16 bytes": second(auth.NewSigned(auth.Key{ID: "a", Subject: "a", Secret: "abcd"})),
		"keys[1] has the id \"a\", which is there":   second(auth.NewSigned(auth.Key{ID: "a", Subject: "a", Secret: auth.NewSecret()}, auth.Key{ID: "a"})),
		"unknown field \"sekret\"":                   second(auth.OpenSigned(file(`{"keys": [{"id": "a", "sekret": "open-sesame"}]}`))),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%v: want %q", err, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestPolicy(t *testing.T) {
	p, err := auth.NewPolicy(auth.Rules{
		Allow: []auth.Rule{
			{Groups: []string{"ops"}, Methods: []string{"*"}},
			{Subjects: []string{"ann", "spiffe://example.org/ns/prod/*"}, Methods: []string{"Arith.*", "a.b.Svc.Get"}},
			{Subjects: []string{"*"}, Methods: []string{"Health.Check"}},
		},
		Deny: []auth.Rule{{Subjects: []string{"*"}, Methods: []string{"Arith.Reset"}}, {Subjects: []string{"mallory"}, Methods: []string{"*"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ann, prod, op := &anser.Identity{Subject: "ann"}, &anser.Identity{Subject: "spiffe://example.org/ns/prod/sa/x"}, &anser.Identity{Subject: "op", Groups: []string{"x", "ops"}}
	for _, c := range []struct {
		id     *anser.Identity
		method string
		want   bool
	}{
		{ann, "Arith.Mul", true},
		{ann, "Arith.Reset", false},
		{ann, "Arithmetic.Mul", false},
		{ann, "Arith.Deep.Mul", false},
		{ann, "arith.Mul", false},
		{ann, "a.b.Svc.Get", true},
		{ann, "a.b.Svc.Set", false},
		{ann, "Health.Check", true},
		{ann, "Anser.Methods", false},
		{ann, "Arith", false},
		{ann, "", false},
		{prod, "Arith.Mul", true},
		{&anser.Identity{Subject: "spiffe://example.org/ns/test/x"}, "Arith.Mul", false},
		{op, "Anser.Methods", true},
		{op, "Arith.Reset", false},
		{&anser.Identity{Subject: "mallory", Groups: []string{"ops"}}, "Health.Check", false},
		{&anser.Identity{Subject: "bob"}, "Health.Check", true},
		{&anser.Identity{Subject: "bob"}, "Arith.Mul", false},
		{nil, "Health.Check", false},
	} {
		if got := p.Allows(c.id, c.method); got != c.want {
			t.Errorf("%+v may call %q: %v, want %v", c.id, c.method, got, c.want)
		}
	}
	empty, err := auth.NewPolicy(auth.Rules{})
	if err != nil || empty.Allows(op, "Arith.Mul") {
		t.Error("a policy without rules allows something", err)
	}
}

// Existing connections follow a policy file.
func TestPolicyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.json")
	write(t, file, `{"allow": [{"subjects": ["ann"], "methods": ["Who.*"]}]}`)
	log, refusal := listening(t)
	p, err := auth.OpenPolicy(file, auth.Poll(10*time.Millisecond), log)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	token := auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest(token)})
	if err != nil {
		t.Fatal(err)
	}
	s, address := serve(t, anser.Authenticate(tokens), anser.Authorize(p))
	c := dial(t, address, auth.Token(token))
	if out, err := who(c); out != "ann []" || err != nil {
		t.Fatal(out, err)
	}
	write(t, file, `{"allow": [{"subjects": ["ann"], "methods": ["Who.Else"]}]}`)
	eventually(t, "the call is denied", func() bool { _, err := who(c); return errors.Is(err, anser.PermissionDenied) })
	write(t, file, `{"allow": [{`)
	refusal()
	if _, err := anser.Call[[]byte](context.Background(), c, "Who.Else", new([]byte)); err != nil {
		t.Error(err)
	}
	write(t, file, `{"allow": [{"subjects": ["*"], "methods": ["*"]}], "deny": []}`)
	eventually(t, "the call is allowed again", func() bool { _, err := who(c); return err == nil })
	if n := s.Stats().Accepted; n != 1 {
		t.Errorf("%d connections were made", n)
	}
}

// ca is the certificate authority of a test.
type ca struct{ *authority.Authority }

func newCA() *ca { return &ca{authority.New("one")} }

func (a *ca) server(t *testing.T) anser.Option {
	return anser.TLS(&tls.Config{
		Certificates: []tls.Certificate{a.Issue(authority.Numbered(100))}, ClientCAs: a.Pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})
}

func (a *ca) client(cert tls.Certificate) anser.DialOption {
	return anser.TLS(&tls.Config{RootCAs: a.Pool, Certificates: []tls.Certificate{cert}})
}

func TestMutualTLS(t *testing.T) {
	a := newCA()
	_, address := serve(t, a.server(t), anser.Authenticate(auth.MutualTLS()))
	spiffe, err := url.Parse("spiffe://example.org/ns/prod/sa/billing")
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*x509.Certificate){
		"spiffe://example.org/ns/prod/sa/billing [ops]": func(c *x509.Certificate) {
			c.URIs, c.DNSNames, c.Subject = []*url.URL{spiffe}, []string{"b.example.org"}, pkix.Name{CommonName: "b", Organization: []string{"ops"}}
		},
		"b.example.org []": func(c *x509.Certificate) {
			c.DNSNames, c.Subject = []string{"b.example.org"}, pkix.Name{CommonName: "b"}
		},
		"b []": func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: "b"} },
	} {
		if got, err := who(dial(t, address, a.client(a.Issue(change)))); got != want || err != nil {
			t.Errorf("%q, %v: want %q", got, err, want)
		}
	}
	refused(t, dial(t, address, a.client(a.Issue())))
}

// Revoking a certificate closes its connections, and it is rejected from then on.
func TestRevocation(t *testing.T) {
	a, other := newCA(), newCA()
	file := filepath.Join(t.TempDir(), "crl.pem")
	write(t, file, string(a.Revoke(1, 7)))
	certs, err := auth.OpenMutualTLS([]string{file}, quick...)
	if err != nil {
		t.Fatal(err)
	}
	defer certs.Close()
	s, address := serve(t, a.server(t), anser.Authenticate(certs))
	named := func(c *x509.Certificate) { c.Subject.CommonName = "ann" }
	seventh, eighth, ninth := a.client(a.Issue(named, authority.Numbered(7))), a.client(a.Issue(named, authority.Numbered(8))), a.client(a.Issue(named, authority.Numbered(9)))
	refused(t, dial(t, address, seventh))
	leaving, staying := dial(t, address, eighth), dial(t, address, ninth)
	for _, c := range []*anser.Client{leaving, staying} {
		if _, err := who(c); err != nil {
			t.Fatal(err)
		}
	}
	write(t, file, string(a.Revoke(2, 7, 8)))
	eventually(t, "the live connection is closed", func() bool { return s.Stats().Unauthenticated["revoked"] == 1 })
	eventually(t, "its client is refused", func() bool { _, err := who(leaving); return anser.CodeOf(err) == anser.Unauthenticated })
	if _, err := who(staying); err != nil {
		t.Error(err)
	}
	// With a list not signed by the authority all its certificates are rejected.
	write(t, file, string(other.Revoke(3)))
	eventually(t, "a list that is forged closes what it is about", func() bool { return s.Stats().Unauthenticated["revoked"] == 2 })
	refused(t, dial(t, address, ninth, anser.MaxMessage(1<<20)))
}

func TestSigned(t *testing.T) {
	secret, second := auth.NewSecret(), auth.NewSecret()
	signed, err := auth.NewSigned(auth.Key{ID: "ann-1", Secret: secret, Subject: "ann", Groups: []string{"ops"}}, auth.Key{ID: "bob-1", Secret: second, Subject: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	s, address := serve(t, anser.Authenticate(signed))
	for range 3 {
		if out, err := who(dial(t, address, auth.Sign("ann-1", secret))); out != "ann [ops]" || err != nil {
			t.Error(out, err)
		}
	}
	for _, opt := range []anser.DialOption{auth.Sign("ann-1", second), auth.Sign("ann-2", secret), auth.Sign("bob-1", secret)} {
		refused(t, dial(t, address, opt))
	}
	if _, err := who(dial(t, address, auth.Sign("ann-1", "x"), anser.WithFailMode(anser.Failfast))); err == nil || !strings.Contains(err.Error(), "want an id") {
		t.Error(err)
	}
	c := dial(t, address, auth.Sign("bob-1", second))
	if _, err := who(c); err != nil {
		t.Fatal(err)
	}
	signed.Set(auth.Key{ID: "ann-1", Secret: secret, Subject: "ann", Groups: []string{"ops"}})
	eventually(t, "the key that was taken back closes its connections", func() bool { return s.Stats().Unauthenticated["revoked"] == 1 })
	if k := (auth.Key{ID: "a", Secret: secret}); strings.Contains(fmt.Sprintf("%v %+v %#v %x", k, &k, k, k), secret[:10]) {
		t.Error("a key prints its secret")
	}
}

// shownBy returns the credential that a client sends, by running a server in its place.
func shownBy(t *testing.T, opt anser.DialOption) *anser.AuthRequest {
	t.Helper()
	got := make(chan *anser.AuthRequest, 1)
	_, address := serve(t, anser.Authenticate(anser.AuthenticatorFunc(func(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
		got <- &anser.AuthRequest{Scheme: l.Scheme, Data: bytes.Clone(l.Data)}
		return &anser.Identity{Subject: "x"}, nil
	})))
	if _, err := who(dial(t, address, opt)); err != nil {
		t.Fatal(err)
	}
	return <-got
}

// A signature is valid once and for a limited time, and changing any bit makes it invalid.
func TestSignatures(t *testing.T) {
	secret := auth.NewSecret()
	signed, err := auth.NewSigned(auth.Key{ID: "ann-1", Secret: secret, Subject: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	l := shownBy(t, auth.Sign("ann-1", secret))
	for i := range l.Data {
		bad := &anser.AuthRequest{Scheme: l.Scheme, Data: bytes.Clone(l.Data)}
		bad.Data[i] ^= 1
		if _, err := signed.Authenticate(t.Context(), bad); err == nil {
			t.Errorf("the byte %d can be changed", i)
		}
		if _, err := signed.Authenticate(t.Context(), &anser.AuthRequest{Scheme: l.Scheme, Data: l.Data[:i]}); err == nil {
			t.Errorf("%d bytes of it are enough", i)
		}
	}
	if id, err := signed.Authenticate(t.Context(), l); err != nil || id.Subject != "ann" {
		t.Fatal(id, err)
	}
	if _, err := signed.Authenticate(t.Context(), l); err == nil || !strings.Contains(err.Error(), "was used before") {
		t.Errorf("a second time: %v", err)
	}
	if _, err := signed.Authenticate(t.Context(), &anser.AuthRequest{Scheme: "token", Data: l.Data}); !errors.Is(err, anser.ErrOtherScheme) {
		t.Error(err)
	}
}

// BenchmarkRevocationCheck measures the cost per connection of a change of the revocation lists.
func BenchmarkRevocationCheck(b *testing.B) {
	a := newCA()
	c, err := auth.ParseRevocations(a.Revoke(1, 7))
	if err != nil {
		b.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(a.Issue(authority.Named("ann"), authority.Numbered(8)).Certificate[0])
	if err != nil {
		b.Fatal(err)
	}
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: a.Pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		b.Fatal(err)
	}
	l := &anser.AuthRequest{Scheme: anser.SchemeTLS, Peer: anser.Peer{TLS: &tls.ConnectionState{VerifiedChains: chains}}}
	for b.Loop() {
		if _, err := c.Authenticate(context.Background(), l); err != nil {
			b.Fatal(err)
		}
	}
}
