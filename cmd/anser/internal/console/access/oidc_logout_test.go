package access_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
)

// logoutBubble returns a console behind an issuer at which browsers end their session.
func logoutBubble(t *testing.T, logout string) (*bubble, *issuer) {
	t.Helper()
	i := newIssuer(t)
	i.URL, i.claims, i.logout = "http://issuer.example", map[string]any{"groups": "ops", "sid": "s-1"}, logout
	b, _ := bubbleWith(t, access.Options{OIDC: i.options()})
	return b, i
}

// loginAt logs a user in at the issuer, and returns the cookie of the session.
func (b *bubble) loginAt(i *issuer) string {
	b.t.Helper()
	l := b.begin(i, "10.0.0.1")
	w := b.send("GET", l.back, "", l.cookie, "10.0.0.1")
	for _, c := range w.Result().Cookies() {
		if strings.HasSuffix(c.Name, "anser-console") {
			return c.Name + "=" + c.Value
		}
	}
	b.t.Fatalf("there is no session: %d %s", w.Code, w.Body)
	return ""
}

// logoutOf ends a session as the page does, and returns the answer.
func (b *bubble) logoutOf(cookie string) (status int, at string) {
	b.t.Helper()
	var s session
	if err := json.Unmarshal(b.send("GET", "/api/session", "", cookie, "10.0.0.1").Body.Bytes(), &s); err != nil {
		b.t.Fatal(err)
	}
	w := b.send("POST", "/api/logout", "", cookie, "10.0.0.1", "X-CSRF-Token", s.CSRF)
	var answer struct{ At string }
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			b.t.Fatal(err)
		}
	}
	return w.Code, answer.At
}

// A logout leads the browser to the provider, with the token that says which session ends there.
func TestLogoutAtTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, i := logoutBubble(t, "http://issuer.example/end?realm=x")
		cookie := b.loginAt(i)
		status, at := b.logoutOf(cookie)
		u, err := url.Parse(at)
		if err != nil || status != 200 {
			t.Fatalf("%d %q, %v", status, at, err)
		}
		q := u.Query()
		token, err := jwt.ParseSigned(q.Get("id_token_hint"), []jose.SignatureAlgorithm{jose.RS256})
		if err != nil {
			t.Fatal(err)
		}
		var claims jwt.Claims
		if err := token.Claims(&i.key.PublicKey, &claims); err != nil || claims.Subject != "u-1" {
			t.Errorf("the token is of %q, %v", claims.Subject, err)
		}
		if u.Host != "issuer.example" || u.Path != "/end" || q.Get("realm") != "x" || q.Get("client_id") != "console" || q.Get("post_logout_redirect_uri") != "http://localhost/" {
			t.Errorf("the browser is led to %s", at)
		}
		if got := b.send("GET", "/look", "", cookie, "10.0.0.1").Code; got != 401 {
			t.Errorf("after the logout: %d", got)
		}

		i.claims["more"] = strings.Repeat("x", 5000) // of a URL that browsers and servers refuse
		if status, at := b.logoutOf(b.loginAt(i)); status != 200 || strings.Contains(at, "id_token_hint") || !strings.Contains(at, "client_id=console") {
			t.Errorf("with a large token: %d %q", status, at)
		}
	})
	for _, logout := range []string{"", "/end", "javascript:alert(1)", "http://ada@issuer.example/end", "ftp://issuer.example/end"} {
		synctest.Test(t, func(t *testing.T) {
			b, i := logoutBubble(t, logout)
			cookie := b.loginAt(i)
			if status, at := b.logoutOf(cookie); status != 204 {
				t.Errorf("%q: %d %q", logout, status, at)
			}
			if got := b.send("GET", "/look", "", cookie, "10.0.0.1").Code; got != 401 {
				t.Errorf("%q: after the logout: %d", logout, got)
			}
		})
	}
}

// The provider ends sessions with a token of its own, and with no other one.
func TestLogoutByTheProvider(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	const event = "http://schemas.openid.net/event/backchannel-logout"
	for _, c := range []struct {
		name   string
		change func(i *issuer, claims map[string]any)
		ends   bool
	}{
		{"a user", func(_ *issuer, claims map[string]any) { delete(claims, "sid") }, true},
		{"a session", func(_ *issuer, claims map[string]any) { delete(claims, "sub") }, true},
		{"a session of a user", func(*issuer, map[string]any) {}, true},
		{"without an end", func(_ *issuer, claims map[string]any) { delete(claims, "exp") }, true},
		{"another session", func(_ *issuer, claims map[string]any) { claims["sid"] = "s-2" }, false},
		{"another user", func(_ *issuer, claims map[string]any) { claims["sub"] = "u-2" }, false},
		{"nobody", func(_ *issuer, claims map[string]any) { delete(claims, "sub"); delete(claims, "sid") }, false},
		{"the token of a login", func(i *issuer, claims map[string]any) { delete(claims, "events"); claims["nonce"] = i.nonce }, false},
		{"with a nonce", func(i *issuer, claims map[string]any) { claims["nonce"] = i.nonce }, false},
		{"another event", func(_ *issuer, claims map[string]any) {
			claims["events"] = map[string]any{event + "s": map[string]any{}}
		}, false},
		{"another audience", func(_ *issuer, claims map[string]any) { claims["aud"] = "mail" }, false},
		{"another issuer", func(_ *issuer, claims map[string]any) { claims["iss"] = "http://evil.example" }, false},
		{"another key", func(i *issuer, _ map[string]any) { i.signs = other }, false},
		{"an old one", func(_ *issuer, claims map[string]any) { claims["iat"] = time.Now().Add(-6 * time.Minute).Unix() }, false},
		{"an expired one", func(_ *issuer, claims map[string]any) { claims["exp"] = time.Now().Add(-time.Second).Unix() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, i := logoutBubble(t, "")
				cookie := b.loginAt(i)
				claims := map[string]any{
					"iss": i.URL, "aud": "console", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "jti": "x",
					"sub": "u-1", "sid": "s-1", "events": map[string]any{event: map[string]any{}},
				}
				c.change(i, claims)
				// The provider sends neither a cookie nor a token of the console.
				w := b.send("POST", "/api/oidc/logout", url.Values{"logout_token": {i.sign(t, claims)}}.Encode(), "", "10.0.0.9", "Content-Type", "application/x-www-form-urlencoded")
				if c.ends && w.Code != 200 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				want := 200
				if c.ends {
					want = 401
				}
				if got := b.send("GET", "/look", "", cookie, "10.0.0.1").Code; got != want {
					t.Errorf("the session afterwards: %d, want %d; the provider got %d", got, want, w.Code)
				}
			})
		})
	}
}
