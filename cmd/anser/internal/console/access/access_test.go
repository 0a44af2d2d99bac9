package access_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access/accesstest"
)

// site is a console with a route for each role.
type site struct {
	*httptest.Server
	access *access.Access
}

func start(t *testing.T, o access.Options) *site {
	t.Helper()
	a, err := access.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for pattern, h := range a.Routes() {
		mux.Handle(pattern, h)
	}
	who := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, access.From(r.Context()).Name) })
	for role := access.Look; role <= access.Administer; role++ {
		mux.Handle("/"+role.String(), a.Wrap(who, role))
	}
	open := make(chan struct{})
	t.Cleanup(func() { close(open) })
	mux.Handle("/open", a.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-open:
			io.WriteString(w, "it was not ended")
		}
	}), access.Look))
	s := &site{httptest.NewServer(mux), a}
	t.Cleanup(s.Close)
	return s
}

// viewer is a browser.
type viewer struct {
	*http.Client
	t    *testing.T
	site *site
	csrf string
}

func (s *site) viewer(t *testing.T) *viewer {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return &viewer{client, t, s, ""}
}

// send makes a request; header has names and values in turns.
func (v *viewer) send(method, path, body string, header ...string) (status int, text string, answer *http.Response) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.site.URL+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if v.csrf != "" {
		r.Header.Set("X-CSRF-Token", v.csrf)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	answer, err = v.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer.StatusCode, string(data), answer
}

// expect fails unless a request gets the status.
func (v *viewer) expect(status int, method, path, body string, header ...string) string {
	v.t.Helper()
	got, text, _ := v.send(method, path, body, header...)
	if got != status {
		v.t.Errorf("%s %s %q: %d %s, want %d", method, path, header, got, text, status)
	}
	return text
}

type session struct {
	User, Role, Login, CSRF string
	Changes                 bool
	May                     []string
	LogIn                   struct{ Method, Path string } `json:"log_in"`
	LogOut                  struct{ Method, Path string } `json:"log_out"`
}

func (v *viewer) session() (s session) {
	v.t.Helper()
	if err := json.Unmarshal([]byte(v.expect(200, "GET", "/api/session", "")), &s); err != nil {
		v.t.Fatal(err)
	}
	v.csrf = s.CSRF
	return s
}

func (v *viewer) login(name string) session {
	v.t.Helper()
	v.expect(204, "POST", "/api/login", `{"user":"`+name+`","password":"`+accesstest.Password+`"}`)
	return v.session()
}

func TestRoles(t *testing.T) {
	s := start(t, access.Options{Users: accesstest.Users(t)})
	routes := append(slices.Sorted(maps.Keys(s.access.Routes())), "GET /look", "POST /look", "GET /operate", "POST /operate", "GET /administer", "POST /administer")
	// The statuses for no session, and for the roles look, operate and administer.
	want := map[string][4]int{
		"GET /api/session":       {200, 200, 200, 200},
		"POST /api/login":        {400, 400, 400, 400}, // the body is empty
		"POST /api/logout":       {401, 204, 204, 204},
		"GET /api/users":         {401, 403, 403, 200},
		"GET /api/oidc/login":    {404, 404, 404, 404},
		"GET /api/oidc/callback": {404, 404, 404, 404},
		"POST /api/oidc/logout":  {404, 404, 404, 404},
		"GET /look":              {401, 200, 200, 200},
		"POST /look":             {401, 200, 200, 200},
		"GET /operate":           {401, 403, 200, 200},
		"POST /operate":          {401, 403, 200, 200},
		"GET /administer":        {401, 403, 403, 200},
		"POST /administer":       {401, 403, 403, 200},
	}
	viewers := []*viewer{s.viewer(t)}
	for role := access.Look; role <= access.Administer; role++ {
		v := s.viewer(t)
		if got := v.login(role.String()); got.User != role.String() || got.Role != role.String() || got.Changes != (role >= access.Operate) {
			t.Fatalf("the session is %+v", got)
		}
		viewers = append(viewers, v)
	}
	slices.SortStableFunc(routes, func(a, b string) int { // the end of the sessions at last
		return strings.Index(a, "logout") - strings.Index(b, "logout")
	})
	for _, route := range routes {
		statuses, ok := want[route]
		if !ok {
			t.Errorf("the route %q has no row", route)
		}
		method, path, _ := strings.Cut(route, " ")
		for i, v := range viewers {
			v.expect(statuses[i], method, path, "")
		}
	}
	for _, v := range viewers {
		v.expect(401, "GET", "/look", "")
	}
}

func TestForgedRequests(t *testing.T) {
	s := start(t, access.Options{Users: accesstest.Users(t)})
	v := s.viewer(t)
	first := v.login("operate")
	v.expect(200, "POST", "/operate", "")
	v.expect(200, "GET", "/operate", "", "X-CSRF-Token", "")
	v.expect(403, "POST", "/operate", "", "X-CSRF-Token", "")
	v.expect(403, "DELETE", "/operate", "", "X-CSRF-Token", strings.Repeat("0", len(first.CSRF)))
	for _, site := range []string{"cross-site", "same-site"} {
		v.expect(403, "POST", "/operate", "", "Sec-Fetch-Site", site)
		v.expect(403, "GET", "/look", "", "Sec-Fetch-Site", site)
		v.expect(403, "POST", "/api/login", `{}`, "Sec-Fetch-Site", site)
	}
	v.expect(403, "POST", "/operate", "", "Origin", "https://evil.example")
	v.expect(403, "POST", "/operate", "", "Origin", "null")
	v.expect(200, "POST", "/operate", "", "Origin", s.URL)
	// Names that an attacker has made to point here.
	v.expect(403, "GET", "/look", "", "Host", "evil.example")
	v.expect(403, "GET", "/api/session", "", "Host", "evil.example")
	v.expect(403, "GET", "/api/oidc/login", "", "Host", "evil.example")
	// A form cannot log in.
	v.expect(400, "POST", "/api/login", `{"user":"operate","password":"`+accesstest.Password+`"}`, "Content-Type", "text/plain")

	other := s.viewer(t)
	if second := other.login("operate"); second.CSRF == first.CSRF {
		t.Error("two sessions have the same token")
	}
	other.expect(403, "POST", "/operate", "", "X-CSRF-Token", first.CSRF)

	_, _, answer := v.send("GET", "/look", "")
	for name, want := range map[string]string{
		"X-Frame-Options": "DENY", "Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if !strings.Contains(answer.Header.Get(name), want) {
			t.Errorf("%s is %q, want %q", name, answer.Header.Get(name), want)
		}
	}
}

func TestWithoutLogin(t *testing.T) {
	s := start(t, access.Options{})
	v := s.viewer(t)
	if got := v.session(); got.Login != access.None || got.Role != "administer" || !got.Changes {
		t.Errorf("the session is %+v", got)
	}
	v.expect(200, "POST", "/administer", "")
	v.expect(403, "POST", "/administer", "", "X-CSRF-Token", "")
	// A proxy would let everybody in.
	for _, h := range []string{"X-Forwarded-For", "Forwarded", "Via", "X-Forwarded-User"} {
		v.expect(403, "GET", "/look", "", h, "10.1.2.3")
		v.expect(403, "GET", "/api/session", "", h, "10.1.2.3")
	}
	v.expect(404, "POST", "/api/login", `{"user":"a","password":"b"}`)
}

func TestOptions(t *testing.T) {
	proxy := &access.ProxyOptions{Header: "X-User", Role: access.Look, From: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	for want, o := range map[string]access.Options{
		"there is no login":          {Public: true},
		"logs users in, and the con": {Users: accesstest.Users(t), Proxy: proxy},
		"proxy in front needs a log": {Trusted: proxy.From},
		"addresses of the pro":       {Proxy: &access.ProxyOptions{Header: "X-User", Role: access.Look}},
		"has no name":                {Proxy: &access.ProxyOptions{}},
		`"X User" is no header`:      {Proxy: &access.ProxyOptions{Header: "X User", From: proxy.From, Role: access.Look}},
		`"X_User" is no header`:      {Proxy: &access.ProxyOptions{Header: "X_User", From: proxy.From, Role: access.Look}},
		`"host" is no header`:        {Proxy: &access.ProxyOptions{Header: "host", From: proxy.From, Role: access.Look}},
		`"X-Role:" is no header`:     {Proxy: &access.ProxyOptions{Header: "X-User", Roles: "X-Role:", From: proxy.From}},
		"both the user and the role": {Proxy: &access.ProxyOptions{Header: "X-User", Roles: "x-user", From: proxy.From}},
		"have no role":               {Proxy: &access.ProxyOptions{Header: "X-User", From: proxy.From}},
		"no URL to return to":        {OIDC: &access.OIDCOptions{ClientID: "x", Role: access.Look}},
		"client id":                  {OIDC: &access.OIDCOptions{}},
		"no such file":               {Users: "/nowhere/users.json"},
	} {
		if _, err := access.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestReadOnlyBeyondThisMachine(t *testing.T) {
	v := start(t, access.Options{Users: accesstest.Users(t), Public: true, ReadOnly: "start it with --allow-changes"}).viewer(t)
	if got := v.login("administer"); got.Changes || !slices.Equal(got.May, []string{"look", "administer"}) || got.LogOut.Path != "api/logout" {
		t.Errorf("the session is %+v", got)
	}
	v.expect(200, "GET", "/operate", "")
	if text := v.expect(403, "POST", "/operate", ""); !strings.Contains(text, "--allow-changes") {
		t.Errorf("the answer is %s", text)
	}
	v.expect(200, "POST", "/look", "")
	v = start(t, access.Options{Users: accesstest.Users(t), Public: true}).viewer(t)
	v.login("operate")
	v.expect(200, "POST", "/operate", "")
}

func TestProxy(t *testing.T) {
	o := access.ProxyOptions{Header: "X-User", Roles: "X-Role", Role: access.Look, From: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	v := start(t, access.Options{Proxy: &o, Hosts: []string{"console.example"}}).viewer(t)
	v.expect(401, "GET", "/look", "")
	v.expect(401, "GET", "/look", "", "X-User", "a\tb")
	if text := v.expect(200, "GET", "/look", "", "X-User", "ada", "Host", "console.example", "X-Forwarded-For", "10.0.0.1"); text != "ada" {
		t.Errorf("the user is %q", text)
	}
	v.expect(403, "GET", "/operate", "", "X-User", "ada")
	v.expect(200, "GET", "/operate", "", "X-User", "ada", "X-Role", "operate")
	v.expect(403, "GET", "/look", "", "X-User", "ada", "X-Role", "root")
	v.expect(403, "POST", "/operate", "", "X-User", "ada", "X-Role", "operate")

	other := o
	other.From = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	v = start(t, access.Options{Proxy: &other}).viewer(t)
	v.expect(403, "GET", "/look", "", "X-User", "ada")
	v.expect(403, "GET", "/api/session", "", "X-User", "ada", "X-Forwarded-For", "10.0.0.1")
}

// One user cannot take all the places for viewers by opening many requests.
func TestOpenRequestsOfAUser(t *testing.T) {
	s := start(t, access.Options{Users: accesstest.Users(t)})
	v, other := s.viewer(t), s.viewer(t)
	v.login("look")
	other.login("operate")
	open := func() (end func()) {
		t.Helper()
		answer, err := v.Get(s.URL + "/open")
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != 200 {
			t.Fatalf("an open request: %d", answer.StatusCode)
		}
		return func() { answer.Body.Close() }
	}
	end := open()
	for range 99 {
		defer open()()
	}
	if text := v.expect(429, "GET", "/look", ""); !strings.Contains(text, "close some") {
		t.Errorf("the answer is %s", text)
	}
	other.expect(200, "GET", "/look", "")
	v.expect(200, "POST", "/look", "")
	end()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if status, text, _ := v.send("GET", "/look", ""); status == 200 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("after one has ended: %d %s", status, text)
		}
	}
}
