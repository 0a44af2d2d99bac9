package access_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
)

// issuer is a provider of OpenID Connect for one user.
type issuer struct {
	*httptest.Server
	key       *rsa.PrivateKey
	signs     *rsa.PrivateKey // key unless a test forges tokens
	claims    map[string]any  // of the user, and what overrides the others
	challenge string
	nonce     string
	logout    string // where browsers end their session; "": nowhere
	down      bool   // RoundTrip fails
	asked     int    // codes that RoundTrip was asked for
}

func startIssuer(t *testing.T) *issuer {
	t.Helper()
	i := newIssuer(t)
	i.Server = httptest.NewServer(i.Config.Handler)
	t.Cleanup(i.Close)
	return i
}

// newIssuer returns one that does not listen yet.
func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, signs: key}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		says := map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		}
		if i.logout != "" {
			says["end_session_endpoint"] = i.logout
		}
		answer(w, says)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		i.challenge, i.nonce = q.Get("code_challenge"), q.Get("nonce")
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"secret code"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if r.FormValue("code") != "secret code" || base64.RawURLEncoding.EncodeToString(sum[:]) != i.challenge {
			http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
		answer(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": i.token(t)})
	})
	i.Server = &httptest.Server{Config: &http.Server{Handler: mux}}
	return i
}

func (i *issuer) token(t *testing.T) string {
	claims := map[string]any{"iss": i.URL, "sub": "u-1", "aud": "console", "nonce": i.nonce, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	for k, v := range i.claims {
		claims[k] = v
	}
	return i.sign(t, claims)
}

// sign returns a token with claims.
func (i *issuer) sign(t *testing.T, claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: i.signs, KeyID: "1"}}, nil)
	if err != nil {
		t.Error(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Error(err)
	}
	return text
}

// startOIDC starts a console behind the issuer.
func (i *issuer) start(t *testing.T) *site {
	t.Helper()
	front := httptest.NewUnstartedServer(nil) // its address is known before its handler
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	a, err := access.New(t.Context(), access.Options{OIDC: &access.OIDCOptions{
		Issuer: i.URL, ClientID: "console", ClientSecret: "s", Redirect: "http://" + front.Listener.Addr().String() + "/api/oidc/callback",
		Roles: map[string]access.Role{"ops": access.Operate, "admins": access.Administer}, Client: client,
	}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for pattern, h := range a.Routes() {
		mux.Handle(pattern, h)
	}
	mux.Handle("/operate", a.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), access.Operate))
	front.Config.Handler = mux
	front.Start()
	t.Cleanup(front.Close)
	return &site{front, a}
}

func TestOpenIDConnect(t *testing.T) {
	i := startIssuer(t)
	i.claims = map[string]any{"email": "ada@example.org", "email_verified": true, "groups": []string{"staff", "ops"}}
	s := i.start(t)
	v := s.viewer(t)
	if got := v.session(); got.User != "" || got.Login != access.OIDC {
		t.Errorf("before the login: %+v", got)
	}
	// The provider and the page of a colleague are other sites.
	text := v.expect(200, "GET", "/api/oidc/login", "", "Sec-Fetch-Site", "cross-site")
	if !strings.Contains(text, "http-equiv=refresh") {
		t.Errorf("the last page is %q", text)
	}
	if got := v.session(); got.User != "ada@example.org" || got.Role != "operate" || !got.Changes {
		t.Errorf("the session is %+v", got)
	}
	v.expect(200, "POST", "/operate", "")

	i.claims = map[string]any{"email": "root@example.org", "email_verified": false, "groups": "admins"}
	v = s.viewer(t)
	v.expect(200, "GET", "/api/oidc/login", "")
	if got := v.session(); got.User != "u-1" || got.Role != "administer" {
		t.Errorf("a user whose address is not verified is %+v", got)
	}
}

func TestRefusedByOpenIDConnect(t *testing.T) {
	i := startIssuer(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := i.start(t)
	for name, test := range map[string]struct {
		claims map[string]any
		signs  *rsa.PrivateKey
		status int
	}{
		"no group":         {map[string]any{"groups": []string{"staff"}}, i.key, 403},
		"another audience": {map[string]any{"groups": "ops", "aud": "mail"}, i.key, 401},
		"another issuer":   {map[string]any{"groups": "ops", "iss": "https://evil.example"}, i.key, 401},
		"another nonce":    {map[string]any{"groups": "ops", "nonce": "x"}, i.key, 401},
		"expired":          {map[string]any{"groups": "ops", "exp": time.Now().Add(-time.Hour).Unix()}, i.key, 401},
		"another key":      {map[string]any{"groups": "ops"}, other, 401},
		"no subject":       {map[string]any{"groups": "ops", "sub": nil, "email": "ada@example.org", "email_verified": true}, i.key, 401},
		"no name":          {map[string]any{"groups": "ops", "sub": "a\x1bb"}, i.key, 401},
	} {
		t.Run(name, func(t *testing.T) {
			i.claims, i.signs = test.claims, test.signs
			v := s.viewer(t)
			v.expect(test.status, "GET", "/api/oidc/login", "")
			if got := v.session(); got.User != "" {
				t.Errorf("there is a session: %+v", got)
			}
		})
	}
	i.claims, i.signs = map[string]any{"groups": "ops"}, i.key
	v := s.viewer(t)
	v.expect(400, "GET", "/api/oidc/callback?code=x&state=y", "")
	// The login of another browser, which an attacker has begun.
	v.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	_, _, answer := v.send("GET", "/api/oidc/login", "")
	at, err := url.Parse(answer.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	back := "/api/oidc/callback?" + url.Values{"code": {"secret code"}, "state": {at.Query().Get("state")}}.Encode()
	victim := s.viewer(t)
	victim.expect(400, "GET", back, "")
	v.expect(400, "GET", "/api/oidc/callback?code=x&state=y", "")
	i.challenge, i.nonce = at.Query().Get("code_challenge"), at.Query().Get("nonce")
	v.expect(200, "GET", back, "")
	v.expect(400, "GET", back, "") // each login leads to one session
}
