package oidctest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// The console at the provider.
const (
	clientID     = "console"
	clientSecret = "the secret of the console"
	password     = "correct horse"
)

// people are the users of the provider, with their groups.
var people = map[string][]string{
	"ada": {"staff", "ops"},
	"bob": {"staff", "viewers"},
	"eve": {"staff"}, // has no role
	"zoe": {"admins", "viewers"},
}

// key is a key with which the provider signs.
type key struct {
	id      string
	private *rsa.PrivateKey
	shown   any // what KeySet shows
}

func newKey(t *testing.T, id string) *key {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return &key{id, private, private}
}

func (k *key) ID() string                                  { return k.id }
func (k *key) Algorithm() jose.SignatureAlgorithm          { return jose.RS256 }
func (k *key) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k *key) Use() string                                 { return "sig" }
func (k *key) Key() any                                    { return k.shown }

func (k *key) public() *key { return &key{k.id, k.private, &k.private.PublicKey} }

// provider is a provider of OpenID Connect.
type provider struct {
	*storage.Storage
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex // guards the fields below
	keys     []*key     // the last one signs
	user     string     // logs in at its page; "" is refused
	inToken  bool       // the groups are in the ID token, not at the endpoint for claims
	down     bool       // it answers nothing
	stranger bool       // the endpoint for claims is about another user
	left     []string   // users whose sessions browsers have ended
	console  string     // URL of the console, to which browsers return after that
	// forge changes the ID token, if it is not nil.
	forge func(claims map[string]any, token string) string
	paths map[string]int // requests
}

// CheckUsernamePassword and others of the storage ask for users here.
type userStore struct{ p *provider }

func (s userStore) ExampleClientID() string { return "example" }

func (s userStore) GetUserByID(id string) *storage.User {
	return s.GetUserByUsername(strings.TrimPrefix(id, "id of "))
}

func (s userStore) GetUserByUsername(name string) *storage.User {
	if _, ok := people[name]; !ok {
		return nil
	}
	return &storage.User{
		ID: "id of " + name, Username: name, Password: password, FirstName: name, Email: name + "@example.org", EmailVerified: name != "bob",
	}
}

// startProvider starts a provider which leads browsers back to a console.
func startProvider(t *testing.T, console string) *provider {
	t.Helper()
	p := &provider{t: t, keys: []*key{newKey(t, "first")}, paths: make(map[string]int), console: console}
	p.Storage = storage.NewStorageWithClients(userStore{p}, map[string]*storage.Client{
		clientID: storage.WebClient(clientID, clientSecret, console+"api/oidc/callback"),
	})
	var handler http.Handler
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(p.server.Close)
	config := &op.Config{CodeMethodS256: true, AuthMethodPost: true}
	if _, err := rand.Read(config.CryptoKey[:]); err != nil {
		t.Fatal(err)
	}
	zitadel, err := op.NewProvider(config, p, op.StaticIssuer(p.server.URL), op.WithAllowInsecure())
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", zitadel)
	issuer := op.NewIssuerInterceptor(zitadel.IssuerFromRequest)
	mux.Handle("/login/username", issuer.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.FormValue("authRequestID")
		if err := p.CheckUsernamePassword(p.who(), password, id); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		http.Redirect(w, r, op.AuthCallbackURL(zitadel)(r.Context(), id), http.StatusFound)
	}))
	mux.HandleFunc("/oauth/token", func(w http.ResponseWriter, r *http.Request) { p.token(w, r, zitadel) })
	handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		down := p.down
		p.paths[r.URL.Path]++
		p.mu.Unlock()
		if down {
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	})
	return p
}

// set changes the provider.
func (p *provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *provider) who() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.user
}

func (p *provider) asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paths[path]
}

// token answers with tokens, which a test may forge.
func (p *provider) token(w http.ResponseWriter, r *http.Request, real http.Handler) {
	p.mu.Lock()
	forge := p.forge
	p.mu.Unlock()
	if forge == nil {
		real.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	real.ServeHTTP(answer, r)
	var tokens map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &tokens); err != nil || answer.Code != 200 {
		p.t.Errorf("the provider answers %d %s", answer.Code, answer.Body)
	}
	raw, _ := tokens["id_token"].(string)
	parsed, err := jwt.ParseSigned(raw, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		p.t.Error(err)
		return
	}
	claims := make(map[string]any)
	if err := parsed.UnsafeClaimsWithoutVerification(&claims); err != nil {
		p.t.Error(err)
	}
	tokens["id_token"] = forge(claims, raw)
	data, err := json.Marshal(tokens)
	if err != nil {
		p.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(bytes.TrimSpace(data))
}

// sign returns a token with claims, as the provider makes it if the key is its own.
func sign(t *testing.T, k jose.SigningKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(k, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		t.Error(err)
		return ""
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Error(err)
	}
	return text
}

func (k *key) signs() jose.SigningKey {
	return jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: k.private, KeyID: k.id}}
}

// SigningKey implements op.Storage.
func (p *provider) SigningKey(context.Context) (op.SigningKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[len(p.keys)-1], nil
}

// KeySet implements op.Storage.
func (p *provider) KeySet(context.Context) (list []op.Key, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.keys {
		list = append(list, k.public())
	}
	return list, nil
}

// consoleClient is the console with the URL to which browsers return after a logout.
type consoleClient struct {
	op.Client
	back string
}

// PostLogoutRedirectURIs implements op.Client.
func (c consoleClient) PostLogoutRedirectURIs() []string { return []string{c.back} }

// GetClientByClientID implements op.Storage.
func (p *provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := p.Storage.GetClientByClientID(ctx, id)
	return consoleClient{c, p.console}, err
}

// TerminateSession implements op.Storage.
func (p *provider) TerminateSession(ctx context.Context, user, client string) error {
	p.set(func() { p.left = append(p.left, user+" of "+client) })
	return p.Storage.TerminateSession(ctx, user, client)
}

// SetUserinfoFromRequest implements op.CanSetUserinfoFromRequest: it is for the ID token.
func (p *provider) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, r op.IDTokenRequest, scopes []string) error {
	if err := p.Storage.SetUserinfoFromRequest(ctx, info, r, scopes); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inToken {
		info.AppendClaims("groups", groups(r.GetSubject()))
	}
	return nil
}

// SetUserinfoFromToken implements op.Storage: it is for the endpoint for claims.
func (p *provider) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	if err := p.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stranger {
		info.Subject = "id of zoe"
	}
	if !p.inToken {
		info.AppendClaims("groups", groups(info.Subject))
	}
	return nil
}

func groups(subject string) []string {
	list, ok := people[strings.TrimPrefix(subject, "id of ")]
	if !ok {
		return []string{fmt.Sprintf("none of %q", subject)}
	}
	return list
}
