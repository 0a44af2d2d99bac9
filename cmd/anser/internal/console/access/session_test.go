package access_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access/accesstest"
)

// An id that is known before a login, such as one that an attacker has planted, is not the one of
// the session, and an earlier session ends.
func TestSessionFixation(t *testing.T) {
	s := start(t, access.Options{Users: accesstest.Users(t)})
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	v := s.viewer(t)
	v.Jar.SetCookies(at, []*http.Cookie{{Name: "anser-console", Value: "planted", Path: "/"}})
	v.login("look")
	first := v.Jar.Cookies(at)[0].Value
	if first == "planted" {
		t.Error("the planted id is the one of the session")
	}
	_, _, answer := v.send("POST", "/api/login", `{"user":"operate","password":"`+accesstest.Password+`"}`)
	c := answer.Cookies()[0]
	if c.Value == first || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge <= 0 {
		t.Errorf("the cookie is %v", c)
	}
	v.session()
	stale := s.viewer(t)
	stale.expect(401, "GET", "/look", "", "Cookie", "anser-console="+first)
	stale.expect(401, "GET", "/look", "", "Cookie", "anser-console="+c.Value+"; anser-console=other")
	stale.expect(200, "GET", "/look", "", "Cookie", "anser-console="+c.Value)
	v.expect(204, "POST", "/api/logout", "")
	stale.expect(401, "GET", "/look", "", "Cookie", "anser-console="+c.Value)
}

func TestSecureCookie(t *testing.T) {
	s := start(t, access.Options{Users: accesstest.Users(t), Secure: true})
	_, _, answer := s.viewer(t).send("POST", "/api/login", `{"user":"look","password":"`+accesstest.Password+`"}`)
	if c := answer.Cookies()[0]; !c.Secure || !strings.HasPrefix(c.Name, "__Host-") {
		t.Errorf("the cookie is %v", c)
	}
}

// bubble answers requests within a synctest bubble, which has no sockets.
type bubble struct {
	t   *testing.T
	mux *http.ServeMux
}

func newBubble(t *testing.T) (*bubble, *access.Access) {
	t.Helper()
	return bubbleWith(t, access.Options{Users: accesstest.Users(t)})
}

func bubbleWith(t *testing.T, o access.Options) (*bubble, *access.Access) {
	t.Helper()
	a, err := access.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	b := &bubble{t, http.NewServeMux()}
	for pattern, h := range a.Routes() {
		b.mux.Handle(pattern, h)
	}
	b.mux.Handle("/look", a.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), access.Look))
	b.mux.Handle("/open", a.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), access.Look))
	return b, a
}

// send makes a request; header has names and values in turns.
func (b *bubble) send(method, path, body, cookie, from string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(b.t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Content-Type" {
			r.Header.Del(header[i])
		}
		r.Header.Add(header[i], header[i+1])
	}
	r.RemoteAddr = from + ":1234"
	w := httptest.NewRecorder()
	b.mux.ServeHTTP(w, r)
	return w
}

func (b *bubble) login(name string) (cookie string) {
	b.t.Helper()
	w := b.send("POST", "/api/login", `{"user":"`+name+`","password":"`+accesstest.Password+`"}`, "", "127.0.0.1")
	if w.Code != 204 {
		b.t.Fatalf("%d %s", w.Code, w.Body)
	}
	c := w.Result().Cookies()[0]
	return c.Name + "=" + c.Value
}

func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBubble(t)
		look := func(cookie string) int { return b.send("GET", "/look", "", cookie, "127.0.0.1").Code }

		idle := b.login("look")
		time.Sleep(59 * time.Minute)
		if got := look(idle); got != 200 {
			t.Errorf("after 59 minutes: %d", got)
		}
		time.Sleep(61 * time.Minute)
		if got := look(idle); got != 401 {
			t.Errorf("after 61 idle minutes: %d", got)
		}

		busy := b.login("look")
		for range 23 {
			time.Sleep(30 * time.Minute)
			if got := look(busy); got != 200 {
				t.Fatalf("a session in use: %d", got)
			}
		}
		time.Sleep(31 * time.Minute)
		if got := look(busy); got != 401 {
			t.Errorf("after more than 12 hours: %d", got)
		}

		// A request that is open, such as the events of a page, keeps a session, and ends with it.
		began := time.Now()
		b.send("GET", "/open", "", b.login("look"), "127.0.0.1")
		if d := time.Since(began); d != 12*time.Hour {
			t.Errorf("an open request ended after %v", d)
		}
	})
}

func TestOnlySoManySessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBubble(t)
		var cookies []string
		for range 21 {
			cookies = append(cookies, b.login("look"))
			time.Sleep(10 * time.Second)
		}
		for i, c := range cookies {
			if got, want := b.send("GET", "/look", "", c, "127.0.0.1").Code, 200; i == 0 && got != 401 || i > 0 && got != want {
				t.Errorf("session %d: %d", i, got)
			}
		}
	})
}

func TestFloodsOfLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBubble(t)
		try := func(from string) int {
			return b.send("POST", "/api/login", `{"user":"look","password":"a wrong password"}`, "", from).Code
		}
		var got []int
		for range 12 {
			got = append(got, try("10.0.0.1"))
		}
		if n := len(slices.DeleteFunc(got, func(code int) bool { return code != 401 })); n != 10 {
			t.Errorf("%d of 12 logins of an address were tried", n)
		}
		// Another address may log in, and the same one after a while.
		if b.login("look") == "" || try("[2001:db8::1]") != 401 {
			t.Error("another address cannot log in")
		}
		time.Sleep(7 * time.Second)
		if got := try("10.0.0.1"); got != 401 {
			t.Errorf("after a while: %d", got)
		}
		// All addresses together.
		refused := 0
		for i := range 60 {
			if try(fmt.Sprintf("10.1.0.%d", i)) == 429 {
				refused++
			}
		}
		if refused < 30 {
			t.Errorf("%d of 60 logins of as many addresses were refused", refused)
		}
	})
}

// A flood of logins keeps no user out of a browser in which the user has logged in before, not even
// from the same address, as behind a proxy. That browser may guess no more than others.
func TestFloodsKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBubble(t)
		try := func(name, password, cookie, from string) *httptest.ResponseRecorder {
			return b.send("POST", "/api/login", `{"user":"`+name+`","password":"`+password+`"}`, cookie, from)
		}
		var known string
		for _, c := range try("look", accesstest.Password, "", "10.0.0.1").Result().Cookies() {
			if strings.HasSuffix(c.Name, "-known") {
				known = c.Name + "=" + c.Value
			}
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.MaxAge <= 0 {
				t.Errorf("the cookie %v", c)
			}
		}
		if known == "" {
			t.Fatal("the browser is not known after a login")
		}
		for i := range 60 {
			try("look", "a wrong password", "", "10.0.0.1")
			try("look", "a wrong password", "", fmt.Sprintf("10.1.0.%d", i))
		}
		if got := try("look", accesstest.Password, "", "10.0.0.1").Code; got != 429 {
			t.Errorf("another browser at the address: %d", got)
		}
		if got := try("look", accesstest.Password, "", "10.2.0.1").Code; got != 429 {
			t.Errorf("another browser elsewhere: %d", got)
		}
		if got := try("look", accesstest.Password, known, "10.0.0.1").Code; got != 204 {
			t.Errorf("the browser of the user: %d", got)
		}
		if got := try("operate", accesstest.Password, known, "10.0.0.1").Code; got != 429 {
			t.Errorf("the browser with another user: %d", got)
		}
		if got := try("look", accesstest.Password, known[:len(known)-1]+"x", "10.0.0.1").Code; got != 429 {
			t.Errorf("with a cookie that was changed: %d", got)
		}
		tried := 0
		for range 30 {
			if try("look", "a wrong password", known, "10.0.0.1").Code == 401 {
				tried++
			}
		}
		if tried != 9 {
			t.Errorf("%d more logins were tried for the cookie", tried)
		}
	})
}

// Removed users are logged out, as users with a new password are, and their open requests end.
func TestRemovedUsers(t *testing.T) {
	file := accesstest.Users(t)
	s := start(t, access.Options{Users: file})
	one, two := s.viewer(t), s.viewer(t)
	one.login("look")
	two.login("operate")
	answer, err := one.Get(s.URL + "/open")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := access.RemoveUser(file, "look"); err != nil {
		t.Fatal(err)
	}
	if err := access.SetUser(file, "operate", access.Operate, "another password"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		a, _, _ := one.send("GET", "/look", "")
		b, _, _ := two.send("GET", "/look", "")
		if a == 401 && b == 401 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the statuses are %d and %d", a, b)
		}
	}
	if text, err := io.ReadAll(answer.Body); len(text) > 0 {
		t.Errorf("the open request: %q, %v", text, err)
	}
	if err := access.RemoveUser(file, "look"); err == nil {
		t.Error("a user was removed twice")
	}
}

// The answer does not say whether there is such a user.
func TestWrongLogins(t *testing.T) {
	s := start(t, access.Options{Users: accesstest.Users(t)})
	v := s.viewer(t)
	known := v.expect(401, "POST", "/api/login", `{"user":"look","password":"a wrong password"}`)
	if unknown := v.expect(401, "POST", "/api/login", `{"user":"root","password":"a wrong password"}`); known != unknown {
		t.Errorf("%s for a known user and %s for another one", known, unknown)
	}
	v.expect(401, "POST", "/api/login", `{"user":"look","password":"`+strings.Repeat("x", 100)+`"}`)
	v.expect(400, "POST", "/api/login", `{"user":"look","password":"`+strings.Repeat("x", 10_000)+`"}`)
	v.expect(400, "POST", "/api/login", `[]`)
}

func TestSetUser(t *testing.T) {
	file := t.TempDir() + "/users.json"
	for _, bad := range []struct{ name, password string }{
		{"", accesstest.Password}, {" a", accesstest.Password}, {"a\nb", accesstest.Password}, {strings.Repeat("x", 201), accesstest.Password}, {"ada", "short"}, {"ada", strings.Repeat("x", 73)},
	} {
		if access.SetUser(file, bad.name, access.Look, bad.password) == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	if access.SetUser(file, "ada", 9, accesstest.Password) == nil {
		t.Error("an unknown role was accepted")
	}
}
