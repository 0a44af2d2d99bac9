package access_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access/accesstest"
)

// RoundTrip lets the issuer answer without a socket.
func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.down {
		return nil, fmt.Errorf("connection refused")
	}
	if r.URL.Path == "/token" {
		i.asked++
	}
	w := httptest.NewRecorder()
	i.Config.Handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// oidcBubble returns a console behind an issuer without sockets. Users are those of the console, or
// none.
func oidcBubble(t *testing.T, users string) (*bubble, *issuer) {
	t.Helper()
	i := newIssuer(t)
	i.URL, i.claims = "http://issuer.example", map[string]any{"groups": "ops"}
	b, _ := bubbleWith(t, access.Options{Users: users, OIDC: i.options()})
	return b, i
}

func (i *issuer) options() *access.OIDCOptions {
	return &access.OIDCOptions{
		Issuer: i.URL, ClientID: "console", ClientSecret: "s", Redirect: "http://localhost/api/oidc/callback",
		Roles: map[string]access.Role{"ops": access.Operate}, Client: &http.Client{Transport: i},
	}
}

// begun is a login that a browser has begun.
type begun struct{ cookie, back string }

// begin begins a login, up to the way back from the provider.
func (b *bubble) begin(i *issuer, from string) begun {
	b.t.Helper()
	w := b.send("GET", "/api/oidc/login", "", "", from)
	at, err := url.Parse(w.Header().Get("Location"))
	if w.Code != http.StatusFound || err != nil {
		b.t.Fatalf("%d %s, %v", w.Code, w.Body, err)
	}
	if i != nil {
		i.challenge, i.nonce = at.Query().Get("code_challenge"), at.Query().Get("nonce")
	}
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 600 {
		b.t.Errorf("the cookie is %v", c)
	}
	return begun{c.Name + "=" + c.Value, "/api/oidc/callback?" + url.Values{"code": {"secret code"}, "state": {at.Query().Get("state")}}.Encode()}
}

// status is an answer of which only the status is of interest. It costs less than a recorder.
type status struct {
	header http.Header
	code   int
}

func (s *status) Header() http.Header         { return s.header }
func (s *status) Write(p []byte) (int, error) { return len(p), nil }
func (s *status) WriteHeader(code int)        { s.code = code }

// A login at the provider goes on whatever number of others are begun meanwhile, and these take no
// memory.
func TestManyBegunLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, i := oidcBubble(t, "")
		mine := b.begin(i, "10.0.0.1")
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/api/oidc/login", nil)
		for n := range 100_000 {
			r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", n>>16, n>>8&255, n&255)
			w := status{header: make(http.Header)}
			b.mux.ServeHTTP(&w, r)
			if w.code != http.StatusFound {
				t.Fatalf("login %d: %d", n, w.code)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
			t.Errorf("begun logins keep %d bytes", grown)
		}
		if w := b.send("GET", mine.back, "", mine.cookie, "10.0.0.1"); w.Code != 200 {
			t.Errorf("the login that was begun before: %d %s", w.Code, w.Body)
		}
	})
}

func TestPendingLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, i := oidcBubble(t, "")
		other := b.begin(i, "10.0.0.2")
		mine := b.begin(i, "10.0.0.1")
		another, _ := oidcBubble(t, "")
		foreign := another.begin(nil, "10.0.0.3")
		name, value, _ := strings.Cut(mine.cookie, "=")
		parts := strings.Split(value, ".")
		for what, c := range map[string]begun{
			"without a cookie":                  {"", mine.back},
			"the cookie of another browser":     {other.cookie, mine.back},
			"the answer for another browser":    {mine.cookie, other.back},
			"the cookie of another console":     foreign,
			"two cookies":                       {mine.cookie + "; " + other.cookie, mine.back},
			"a later time":                      {name + "=" + parts[0] + ".9999999999." + parts[2], mine.back},
			"another id":                        {name + "=x." + parts[1] + "." + parts[2], mine.back},
			"no MAC":                            {name + "=" + parts[0] + "." + parts[1] + ".", mine.back},
			"no time":                           {name + "=" + parts[0] + "." + parts[2], mine.back},
			"no parts":                          {name + "=x", mine.back},
			"an empty cookie":                   {name + "=", mine.back},
			"no state":                          {mine.cookie, "/api/oidc/callback?code=x"},
			"a session instead of a login":      {name + "=" + strings.Repeat("A", 52), mine.back},
			"the MAC of the state, not of this": {name + "=" + parts[0] + "." + parts[1] + "." + strings.TrimPrefix(mine.back[strings.Index(mine.back, "state="):], "state="), mine.back},
		} {
			if w := b.send("GET", c.back, "", c.cookie, "10.0.0.1"); w.Code != 400 {
				t.Errorf("%s: %d %s", what, w.Code, w.Body)
			}
		}
		if i.asked != 0 {
			t.Errorf("the provider was asked %d times", i.asked)
		}
		// The login of the cookie goes on: another tab of the browser may have begun the one before
		// it, and any page can lead the browser here.
		for _, back := range []string{other.back, "/api/oidc/callback?code=x&state=y", "/api/oidc/callback"} {
			if w := b.send("GET", back, "", mine.cookie, "10.0.0.1"); w.Code != 400 || len(w.Result().Cookies()) > 0 {
				t.Errorf("%s: %d %s, cookies %v", back, w.Code, w.Body, w.Result().Cookies())
			}
		}
		time.Sleep(10*time.Minute - time.Second)
		if w := b.send("GET", mine.back, "", mine.cookie, "10.0.0.1"); w.Code != 200 {
			t.Errorf("after almost ten minutes: %d %s", w.Code, w.Body)
		}
		// The issuer takes each code as often as it comes.
		for range 2 {
			if w := b.send("GET", mine.back, "", mine.cookie, "10.0.0.1"); w.Code != 400 || len(w.Result().Cookies()) != 1 {
				t.Errorf("a login that was used: %d %s", w.Code, w.Body)
			}
		}
		late := b.begin(i, "10.0.0.1")
		time.Sleep(10*time.Minute + time.Second)
		if w := b.send("GET", late.back, "", late.cookie, "10.0.0.1"); w.Code != 400 {
			t.Errorf("after ten minutes: %d %s", w.Code, w.Body)
		}
	})
}

// Answers of browsers lead to requests for the provider, of which strangers can cause few; a
// browser in which a user has logged in has a limit of its own.
func TestFloodsOfAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, i := oidcBubble(t, "")
		mine := b.begin(i, "10.0.0.1")
		var known string
		for _, c := range b.send("GET", mine.back, "", mine.cookie, "10.0.0.1").Result().Cookies() {
			if strings.HasSuffix(c.Name, "-known") {
				known = c.Name + "=" + c.Value
			}
		}
		i.asked = 0
		theirs := b.begin(nil, "10.0.0.1")
		for range 50 {
			b.send("GET", theirs.back, "", theirs.cookie, "10.0.0.1")
		}
		if i.asked != 9 {
			t.Errorf("the provider was asked %d times", i.asked)
		}
		mine = b.begin(i, "10.0.0.1")
		w := b.send("GET", mine.back, "", mine.cookie, "10.0.0.1")
		if w.Code != 429 || w.Header().Get("Retry-After") == "" || len(w.Result().Cookies()) > 0 {
			t.Errorf("another browser at the address: %d %s", w.Code, w.Body)
		}
		if w := b.send("GET", mine.back, "", mine.cookie+"; "+known, "10.0.0.1"); w.Code != 200 {
			t.Errorf("a known browser: %d %s", w.Code, w.Body)
		}
		mine = b.begin(i, "10.0.0.1")
		if w := b.send("GET", mine.back, "", mine.cookie+"; "+known+"x", "10.0.0.1"); w.Code != 429 {
			t.Errorf("with a changed cookie: %d %s", w.Code, w.Body)
		}
		time.Sleep(7 * time.Second)
		if w := b.send("GET", mine.back, "", mine.cookie, "10.0.0.1"); w.Code != 200 {
			t.Errorf("the same page after some seconds: %d %s", w.Code, w.Body)
		}
	})
}

// Used logins are remembered until their end, and those of one user are few: one cannot fill the
// memory, nor take the places of others.
func TestUsedLoginsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, i := oidcBubble(t, "")
		login := func(from string) int {
			l := b.begin(i, from)
			return b.send("GET", l.back, "", l.cookie, from).Code
		}
		for n := range 101 {
			want := 200
			if n == 100 {
				want = 429
			}
			if got := login(fmt.Sprintf("10.0.0.%d", n)); got != want {
				t.Fatalf("login %d of a user: %d", n, got)
			}
		}
		i.claims = map[string]any{"groups": "ops", "sub": "u-2"}
		if got := login("10.0.1.1"); got != 200 {
			t.Errorf("another user: %d", got)
		}
		i.claims = map[string]any{"groups": "ops"}
		time.Sleep(11 * time.Minute)
		if got := login("10.0.1.2"); got != 200 {
			t.Errorf("after ten minutes: %d", got)
		}
	})
}

// Users of the console log in while the provider does not answer, which then says so. It is asked
// again, and not for every login.
func TestProviderThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		i.URL, i.claims, i.down = "http://issuer.example", map[string]any{"groups": "ops"}, true
		if _, err := access.New(t.Context(), access.Options{OIDC: i.options()}); err == nil || !strings.Contains(err.Error(), "does not describe itself") {
			t.Errorf("without users of the console: %v", err)
		}
		b, a := bubbleWith(t, access.Options{Users: accesstest.Users(t), OIDC: i.options()})
		if err := a.ProviderTrouble(); err == nil {
			t.Error("the trouble is not known")
		}
		silent := func(path, cookie string) {
			t.Helper()
			if w := b.send("GET", path, "", cookie, "10.0.0.1"); w.Code != 502 || !strings.Contains(w.Body.String(), "issuer.example does not answer") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		silent("/api/oidc/login", "")
		if got := b.send("GET", "/look", "", b.login("look"), "127.0.0.1").Code; got != 200 {
			t.Errorf("a user of the console: %d", got)
		}
		i.down = false
		silent("/api/oidc/login", "")
		time.Sleep(6 * time.Second)
		l := b.begin(i, "10.0.0.1")
		if err := a.ProviderTrouble(); err != nil {
			t.Error(err)
		}
		i.down = true
		silent(l.back, l.cookie)
		i.down = false
		l = b.begin(i, "10.0.0.1")
		if w := b.send("GET", l.back, "", l.cookie, "10.0.0.1"); w.Code != 200 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if w := b.send("GET", "/api/session", "", "", "10.0.0.1"); !strings.Contains(w.Body.String(), `"login":"local"`) || !strings.Contains(w.Body.String(), `"log_in_provider":{"method":"GET","path":"api/oidc/login"}`) {
			t.Errorf("the session is %s", w.Body)
		}
	})
}

// A user of the provider cannot be mistaken for a user of the console, nor for the console.
func TestNamesOfTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := accesstest.Users(t)
		b, i := oidcBubble(t, file)
		login := func(claims map[string]any) (int, string) {
			i.claims = claims
			l := b.begin(i, "10.0.0.1")
			w := b.send("GET", l.back, "", l.cookie, "10.0.0.1")
			for _, c := range w.Result().Cookies() {
				if strings.HasSuffix(c.Name, "anser-console") {
					return w.Code, c.Name + "=" + c.Value
				}
			}
			return w.Code, ""
		}
		for _, name := range []string{"console", "Console", "This Machine", "a\x1bb"} {
			if got, _ := login(map[string]any{"groups": "ops", "sub": name}); got != 401 {
				t.Errorf("%q: %d", name, got)
			}
		}
		if got, _ := login(map[string]any{"groups": "ops", "sub": "administer"}); got != 403 {
			t.Errorf("the name of a user of the console: %d", got)
		}
		status, cookie := login(map[string]any{"groups": "ops", "sub": "ada"})
		if status != 200 || b.send("GET", "/look", "", cookie, "10.0.0.1").Code != 200 {
			t.Errorf("another name: %d", status)
		}
		if err := access.SetUser(file, "ada", access.Administer, accesstest.Password); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if got := b.send("GET", "/look", "", cookie, "10.0.0.1").Code; got != 401 {
			t.Errorf("after the console has a user with the name: %d", got)
		}
	})
}
