package oidctest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
)

// start starts a provider and a console behind it.
func start(t *testing.T, more ...string) (*provider, string) {
	t.Helper()
	at := freeURL(t)
	p := startProvider(t, at)
	startConsole(t, p, at, more...)
	return p, at
}

// Groups give roles, whether the provider has them in the ID token or at its endpoint for claims.
func TestLogin(t *testing.T) {
	p, at := start(t)
	for _, inToken := range []bool{false, true} {
		p.set(func() { p.inToken = inToken })
		for _, c := range []struct {
			user, name, role string
			status           int
		}{
			{"ada", "ada@example.org", "operate", 200},
			{"bob", "id of bob", "look", 200}, // the provider has not verified the address
			{"zoe", "zoe@example.org", "administer", 200},
			{"eve", "", "", 403},
		} {
			t.Run(fmt.Sprint(c.user, inToken), func(t *testing.T) {
				b := newBrowser(t, at)
				b.expect(401, "GET", "api/system", "")
				status, text := b.login(p, c.user)
				if got := b.session(); status != c.status || got.User != c.name || got.Role != c.role || got.Login != access.OIDC {
					t.Errorf("%d %s: %+v", status, text, got)
				}
				if c.status != 200 {
					b.expect(401, "GET", "api/system", "")
					return
				}
				b.expect(200, "GET", "api/system", "")
				token := b.session().CSRF
				want := 403
				if c.role != "look" {
					want = 400 // it may, and the request is empty
				}
				b.expect(want, "POST", "api/canary", "{}", "X-CSRF-Token", token)
				q := b.seen[0].Query()
				if q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || len(q.Get("nonce")) < 32 || len(q.Get("state")) < 32 ||
					q.Get("response_type") != "code" || q.Get("nonce") == q.Get("state") || strings.Contains(b.seen[0].String(), "secret") {
					t.Errorf("the browser was led to %s", b.seen[0])
				}
			})
		}
	}
}

// After a logout neither the session nor the way back from the provider is of use, and the one at
// the provider ends, too.
func TestLogout(t *testing.T) {
	p, at := start(t)
	b := newBrowser(t, at)
	b.login(p, "ada")
	first := b.session()
	jar, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	stolen := ""
	for _, c := range b.Jar.Cookies(jar) {
		if c.Name == "anser-console" {
			stolen = c.Name + "=" + c.Value
		}
	}
	back := b.seen[len(b.seen)-1].String()
	if !strings.Contains(back, "api/oidc/callback?") {
		t.Fatalf("the browser was led to %s at last", back)
	}
	other := newBrowser(t, at)
	other.expect(200, "GET", "api/system", "", "Cookie", stolen)
	var leaving struct{ At string }
	if err := json.Unmarshal([]byte(b.expect(200, "POST", "api/logout", "", "X-CSRF-Token", first.CSRF)), &leaving); err != nil {
		t.Fatal(err)
	}
	b.expect(401, "GET", "api/system", "")
	other.expect(401, "GET", "api/system", "", "Cookie", stolen)
	b.expect(400, "GET", back, "")
	if got := b.session(); got.User != "" {
		t.Errorf("the session is %+v", got)
	}
	if !strings.HasPrefix(leaving.At, p.server.URL+"/") {
		t.Errorf("the browser is led to %s", leaving.At)
	}
	b.expect(200, "GET", leaving.At, "")
	if last := b.seen[len(b.seen)-1].String(); last != at {
		t.Errorf("the provider leads the browser to %s, want %s", last, at)
	}
	p.set(func() {
		if !slices.Equal(p.left, []string{"id of ada of console"}) {
			t.Errorf("the provider has ended the sessions %q", p.left)
		}
	})
	b.login(p, "ada")
	if again := b.session(); again.User != "ada@example.org" || again.CSRF == first.CSRF {
		t.Errorf("after another login: %+v", again)
	}
}

// What the real provider would not sign, or not for this console and this login, is refused.
func TestForgedTokens(t *testing.T) {
	// The logins of an address are limited: each one has an address behind a proxy.
	p, at := start(t, "--proxy-from", "127.0.0.1")
	n := 0
	p.set(func() { p.inToken = true })
	own, unknown := p.keys[0], newKey(t, "unknown")
	with := func(name string, value any) func(map[string]any, string) string {
		return func(claims map[string]any, _ string) string {
			claims[name] = value
			return sign(t, own.signs(), claims)
		}
	}
	for name, forge := range map[string]func(map[string]any, string) string{
		"another audience": with("aud", []string{"mail"}),
		"no audience":      with("aud", nil),
		"another nonce":    with("nonce", "x"),
		"no nonce":         with("nonce", nil),
		"another issuer":   with("iss", "https://evil.example"),
		"expired":          with("exp", time.Now().Add(-time.Minute).Unix()),
		"no end":           with("exp", nil),
		"not valid yet":    with("nbf", time.Now().Add(time.Hour).Unix()),
		"no subject":       with("sub", nil),
		"the console's":    with("sub", "console"),
		"control codes":    with("sub", "a\x1b[2Jb"),
		"an unknown key":   func(claims map[string]any, _ string) string { return sign(t, unknown.signs(), claims) },
		"an unknown key with a known id": func(claims map[string]any, _ string) string {
			return sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: unknown.private, KeyID: own.id}}, claims)
		},
		"the secret as a key": func(claims map[string]any, _ string) string {
			return sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: []byte(strings.Repeat(clientSecret, 2))}, claims)
		},
		"no signature": func(_ map[string]any, token string) string {
			parts := strings.Split(token, ".")
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."
		},
		"other claims with the signature": func(_ map[string]any, token string) string {
			parts := strings.Split(token, ".")
			data, err := base64.RawURLEncoding.DecodeString(parts[1])
			if err != nil {
				t.Error(err)
			}
			data = []byte(strings.Replace(string(data), "id of bob", "id of zoe", 1))
			return parts[0] + "." + base64.RawURLEncoding.EncodeToString(data) + "." + parts[2]
		},
		"no token": func(map[string]any, string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBrowser(t, at)
			p.set(func() {
				p.forge = func(claims map[string]any, token string) string {
					claims["email"], claims["email_verified"] = "bob@example.org", name == "no subject"
					return forge(claims, token)
				}
			})
			n++
			status, text := b.login(p, "bob", "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", n))
			if got := b.session(); status != 401 || got.User != "" || !strings.Contains(text, `"advice"`) {
				t.Errorf("%d %s: %+v", status, text, got)
			}
			b.expect(401, "GET", "api/system", "")
		})
	}
}

// The endpoint for claims must be about the user of the login.
func TestClaimsOfAnotherUser(t *testing.T) {
	p, at := start(t)
	p.set(func() { p.stranger = true })
	b := newBrowser(t, at)
	status, text := b.login(p, "bob")
	if got := b.session(); status != 502 || got.User != "" || !strings.Contains(text, "does not say more about the user") {
		t.Errorf("%d %s: %+v", status, text, got)
	}
}

// The way back from the provider works once, in the browser that has begun the login.
func TestReplayedLogins(t *testing.T) {
	p, at := start(t)
	b, victim := newBrowser(t, at), newBrowser(t, at)
	at2, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	back := b.begin(p, "ada")
	// An attacker leads another browser into the attacker's session.
	victim.expect(400, "GET", back, "")
	theirs := victim.begin(p, "bob")
	victim.expect(400, "GET", back, "")
	victim.expect(200, "GET", theirs, "") // the login of that browser goes on
	// An attacker brings a code of another user into a login of the attacker: PKCE refuses it.
	theirs = victim.begin(p, "bob")
	mixed, err := url.Parse(theirs)
	if err != nil {
		t.Fatal(err)
	}
	code, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	q := mixed.Query()
	q.Set("code", code.Query().Get("code"))
	mixed.RawQuery = q.Encode()
	victim.expect(401, "GET", mixed.String(), "")

	back = b.begin(p, "ada")
	cookies := b.Jar.Cookies(at2)
	b.expect(200, "GET", back, "")
	if got := b.session(); got.User != "ada@example.org" {
		t.Fatalf("the session is %+v", got)
	}
	b.expect(400, "GET", back, "")
	thief := newBrowser(t, at)
	thief.Jar.SetCookies(at2, cookies)
	if status, text := thief.send("GET", back, ""); status != 401 && status != 400 {
		t.Errorf("a stolen cookie with a used code: %d %s", status, text)
	}
	if got := thief.session(); got.User != "" {
		t.Errorf("the session of a thief is %+v", got)
	}
	// A refusal of the provider is said, and begins nothing.
	denied := b.begin(p, "ada")
	refusal, err := url.Parse(denied)
	if err != nil {
		t.Fatal(err)
	}
	refusal.RawQuery = url.Values{"error": {"access_denied"}, "state": {refusal.Query().Get("state")}}.Encode()
	if text := b.expect(401, "GET", refusal.String(), ""); !strings.Contains(text, "refused") {
		t.Errorf("the answer is %s", text)
	}
}

// The provider changes its keys, and a console that has not seen the new one asks for it.
func TestKeyRotation(t *testing.T) {
	p, at := start(t)
	login := func(want int) {
		t.Helper()
		b := newBrowser(t, at)
		if status, text := b.login(p, "ada"); status != want {
			t.Errorf("%d %s, want %d", status, text, want)
		}
	}
	login(200)
	asked := p.asked("/keys")
	login(200)
	if n := p.asked("/keys"); n != asked {
		t.Errorf("the keys were asked for again without need")
	}
	second, third := newKey(t, "second"), newKey(t, "third")
	p.set(func() { p.keys = append(p.keys, second) })
	login(200)
	p.set(func() { p.keys = []*key{third} })
	login(200)
	// The one that was withdrawn is of no use any more.
	p.set(func() {
		p.forge = func(claims map[string]any, _ string) string { return sign(t, second.signs(), claims) }
	})
	login(401)
}

// Users of the console log in while the provider is down, from its start and later, and sessions of
// the provider's users go on.
func TestProviderThatIsDown(t *testing.T) {
	at := freeURL(t)
	p := startProvider(t, at)
	p.set(func() { p.down = true })
	users := filepath.Join(t.TempDir(), "users.json")
	if err := access.SetUser(users, "local", access.Operate, password); err != nil {
		t.Fatal(err)
	}
	out := startConsole(t, p, at, "--users", users)
	for deadline := time.Now().Add(time.Minute); !strings.Contains(out.String(), "does not describe itself"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the console does not say that the provider is down:\n%s", out)
		}
	}
	local := newBrowser(t, at)
	if text := local.expect(502, "GET", "api/oidc/login", ""); !strings.Contains(text, "does not answer") {
		t.Errorf("the answer is %s", text)
	}
	local.expect(204, "POST", "api/login", `{"user":"local","password":"`+password+`"}`)
	if got := local.session(); got.User != "local" || got.Role != "operate" || got.Login != access.Local {
		t.Errorf("the session is %+v", got)
	}
	p.set(func() { p.down = false })
	b := newBrowser(t, at)
	status, text := b.login(p, "ada")
	for deadline := time.Now().Add(time.Minute); status == 502 && time.Now().Before(deadline); time.Sleep(time.Second) {
		status, text = b.login(p, "ada")
	}
	if got := b.session(); status != 200 || got.User != "ada@example.org" {
		t.Fatalf("%d %s: %+v", status, text, got)
	}
	late := newBrowser(t, at)
	back := late.begin(p, "bob")
	p.set(func() { p.down = true })
	if text := late.expect(502, "GET", back, ""); !strings.Contains(text, "does not answer") || strings.Contains(text, "dial") {
		t.Errorf("the answer is %s", text)
	}
	b.expect(200, "GET", "api/system", "")
	local.expect(200, "GET", "api/system", "")
	if data, err := os.ReadFile(users); err != nil || strings.Contains(string(data), password) {
		t.Errorf("the file of users: %v", err)
	}
}

// The provider ends sessions by a request of its own, with a token that it has signed for it.
func TestLogoutByTheProvider(t *testing.T) {
	p, at := start(t)
	users := make(map[string]*browser)
	for _, name := range []string{"ada", "bob"} {
		b := newBrowser(t, at)
		b.login(p, name)
		b.expect(200, "GET", "api/system", "")
		users[name] = b
	}
	token := sign(t, p.keys[0].signs(), map[string]any{
		"iss": p.server.URL, "aud": clientID, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "jti": "1", "sub": "id of ada",
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	})
	provider := newBrowser(t, at)
	provider.expect(200, "POST", "api/oidc/logout", url.Values{"logout_token": {token}}.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	users["ada"].expect(401, "GET", "api/system", "")
	users["bob"].expect(200, "GET", "api/system", "")
	provider.expect(400, "POST", "api/oidc/logout", "logout_token=x", "Content-Type", "application/x-www-form-urlencoded")
}
