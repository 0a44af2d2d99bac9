package protocols_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/internal/test/protocols/librarypb"
	"github.com/anser-rpc/anser/internal/test/protocols/sample"
	"github.com/anser-rpc/anser/protocols"
)

func addLibrary(l *sample.Library) func(*anser.Server) {
	return func(s *anser.Server) { librarypb.RegisterLibraryServer(s, l) }
}

// versions are clients of both versions of HTTP.
func versions(t *testing.T) map[string]*http.Transport {
	t.Helper()
	first, second := new(http.Transport), new(http.Transport)
	second.Protocols = new(http.Protocols)
	second.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(first.CloseIdleConnections)
	t.Cleanup(second.CloseIdleConnections)
	return map[string]*http.Transport{"HTTP/1.1": first, "HTTP/2": second}
}

// ask sends a request without following what a client would do to its path. headers are pairs.
func ask(t *testing.T, c http.RoundTripper, method, address, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address, in)
	if err != nil {
		t.Fatal(err)
	}
	r.URL.Opaque, r.URL.RawQuery, _ = strings.Cut("//"+address+path, "?")
	r.URL.Opaque = strings.TrimPrefix(r.URL.Opaque, "//"+address)
	if !strings.HasPrefix(r.URL.Opaque, "/") || strings.HasPrefix(r.URL.Opaque, "//") {
		r.URL.Opaque = "//" + address + path
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(out)
}

// compact removes the white space that protobuf's JSON adds by chance.
func compact(s string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(s)) != nil {
		return s
	}
	return b.String()
}

// Methods are called by the paths of their annotations.
func TestAnnotations(t *testing.T) {
	address := serve(t, addLibrary(new(sample.Library)))
	for version, c := range versions(t) {
		for request, row := range map[string]struct {
			body, kind string
			status     int
			answer     string
		}{
			"GET /v1/shelves/1/books/2":       {status: 200, answer: `{"name":"shelves/1/books/2","title":"T"}`},
			"GET /v1/books/a%2Fb":             {status: 200, answer: `{"name":"a/b","title":"T"}`},
			"GET /v1/shelves/1/books/2:title": {status: 200, answer: `"T"`},
			"GET /v1/shelves/1/books/missing": {status: 404, answer: `{"title":"not found","status":404,"detail":"there is no book shelves/1/books/missing","code":"not_found","outcome":"executed"}`},
			"HEAD /v1/shelves/1/books/2":      {status: 200},
			"GET /v1/shelves/1/books":         {status: 200, answer: `{"request":"{\"shelf\":\"1\"}"}`},
			"GET /v1/shelves/1/books?pageSize=2&authors=a&authors=b&filter.genre=NOVEL&filter.and.others=POETRY&filter.and.others=1": {status: 200, answer: `{"request":"{\"shelf\":\"1\",\"pageSize\":2,\"authors\":[\"a\",\"b\"],\"filter\":{\"genre\":\"NOVEL\",\"and\":{\"others\":[\"POETRY\",\"NOVEL\"]}}}"}`},
			"GET /v1/books":                                       {status: 200, answer: `[]`},
			"GET /v1/books?nothing=1":                             {status: 400},
			"GET /v1/books?page_size=many":                        {status: 400},
			"GET /v1/books?page_size=%zz":                         {status: 400},
			"POST /v1/shelves/1/books":                            {body: `{"title":"x"}`, status: 200, answer: `{"name":"shelves/1/books/new","title":"x"}`},
			"POST /v1/shelves/2/books?validate_only=true":         {body: `{"title":"x"}`, status: 200, answer: `{"name":"shelves/2/books/new","title":"x"}`},
			"PATCH /v1/shelves/1/books/2?update_mask=title,genre": {body: `{"title":"x"}`, status: 200, answer: `{"name":"shelves/1/books/2","title":"x","labels":{"mask":"title,genre"}}`},
			"PUT /v1/shelves/1/books/2":                           {body: `{"book":{"name":"y","title":"x"},"updateMask":"pages"}`, status: 200, answer: `{"name":"shelves/1/books/2","title":"x","labels":{"mask":"pages"}}`},
			"DELETE /v1/shelves/1/books/2":                        {status: 200, answer: `{}`},
			"POST /v1/shelves/1/x/2:archive":                      {status: 200, answer: `{"name":"shelves/1/x/2"}`},
			"ARCHIVE /v1/old/shelves/1/x/2":                       {status: 200, answer: `{"name":"shelves/1/x/2"}`},
			"GET /v1/shelves/7/books:watch":                       {status: 200, answer: "{\"name\":\"7a\"}\n{\"name\":\"7b\"}\n"},
			"POST /v1/shelves/3/books:import":                     {body: "{\"title\":\"a\"}\n{\"title\":\"b\"}", kind: "application/x-ndjson", status: 200, answer: "{\"books\":[{\"name\":\"shelves/3\",\"title\":\"a\"},{\"name\":\"shelves/3\",\"title\":\"b\"}]}"},
			"GET /v1/shelves/1/books/2/cover":                     {status: 200, answer: "PNG of shelves/1/books/2"},
			"PUT /v1/shelves/1/books/2/cover":                     {body: "GIF", kind: "image/gif", status: 200, answer: `{"name":"shelves/1/books/2","title":"image/gif GIF"}`},
			"PUT /v1/shelves/1/books/3/cover":                     {body: "GIF", kind: "text/plain", status: 415},
			"PUT /v1/shelves/1/books/2/title":                     {status: 404},
			"POST /v1/books":                                      {body: `{}`, status: 405},
			"DELETE /v1/shelves/1/books/3":                        {body: `{}`, status: 400},
			"POST /v1/shelves/4/books":                            {body: `{}`, kind: "text/plain", status: 415},
			"POST /v1/shelves/5/books":                            {body: `{"title":`, status: 400},
			"POST /test.library.v1.Library.GetBook":               {body: `{"name":"n"}`, status: 200, answer: `{"name":"n","title":"T"}`},
			"GET /test.library.v1.Library.GetBook":                {status: 405},
		} {
			t.Run(version+" "+request, func(t *testing.T) {
				method, path, _ := strings.Cut(request, " ")
				var headers []string
				if row.kind != "" {
					headers = []string{"Content-Type", row.kind}
				}
				resp, got := ask(t, c, method, address, path, row.body, headers...)
				if resp.StatusCode != row.status || row.answer != "" && compact(got) != row.answer {
					if !strings.Contains(row.answer, "\n") || strings.ReplaceAll(got, " ", "") != row.answer {
						t.Errorf("%d %s, want %d %s", resp.StatusCode, got, row.status, row.answer)
					}
				}
				if method == "HEAD" && got != "" {
					t.Errorf("the answer to HEAD has the body %q", got)
				}
				if row.status >= 400 && row.status != 404 && resp.Header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("the content type is %q: %s", resp.Header.Get("Content-Type"), got)
				}
				if row.status == 405 && resp.Header.Get("Allow") == "" {
					t.Error("Allow is missing")
				}
				if strings.HasSuffix(path, "/cover") && method == "GET" && resp.Header.Get("Content-Type") != "image/png" {
					t.Errorf("the picture has the type %q", resp.Header.Get("Content-Type"))
				}
			})
		}
	}
}

// Paths that look like another one for people, proxies or file systems reach no method.
func TestAnnotatedPathsAreCanonical(t *testing.T) {
	l := new(sample.Library)
	address := serve(t, addLibrary(l))
	for version, c := range versions(t) {
		for _, path := range []string{
			"/V1/books", "/v1/Books", "/v1/books/", "/v1//books", "//v1/books", "/v1/./books", "/v1/x/../books", "/v1/%62ooks", "/v1%2Fbooks", "/v1/books%00",
			"/v1/books%20", "/v1/books;x", "/v1/books:", "/v1\\books", "/v1/books/..", "/v1/books/%2e%2e", "/v1/books/.", "/v1/books/a%00b", "/v1/books/%C0%AE",
			"/v1/books/a%0D%0Ab", "/v1/shelves/../books/2", "/v1/shelves/1/books/2%3Atitl%00", "/v1/shelves//books/2", "/v1/shelves/%2e/books/2",
			"/v1/shelves/1/%62ooks/2", "/v1/books/a?shelf=x&shelf=y", "/v1/books/x?name=y", "/v1/shelves/1/books/2:Title:title/",
		} {
			before := l.Calls.Load()
			resp, body := ask(t, c, "GET", address, path, "")
			if resp.StatusCode != 404 && resp.StatusCode != 400 || l.Calls.Load() != before {
				t.Errorf("%s: %s is answered with %d %s", version, path, resp.StatusCode, body)
			}
		}
	}
}

// What a page of another site can make a browser send calls only what has no effects.
func TestAnnotationsAndBrowsers(t *testing.T) {
	l := new(sample.Library)
	own := anser.Protocols(protocols.HTTP(protocols.AllowOrigins("https://app.example")))
	s := anser.NewServer(own, anser.NoSignals(), silent)
	addLibrary(l)(s)
	listener, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	defer func() {
		s.Close()
		<-served
	}()
	address := listener.Addr().String()
	const browser = "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0"
	const list, get, archive = "GET /v1/books", "GET /v1/books/a", "POST /v1/shelves/1/x/2:archive"
	for name, row := range map[string]struct {
		request string
		headers []string
		status  int
	}{
		"curl":                        {list, nil, 200},
		"browser, old, other page":    {list, []string{"User-Agent", browser, "Referer", "http://evil.example/"}, 403},
		"browser, old, no referrer":   {list, []string{"User-Agent", browser}, 403},
		"browser, own page":           {list, []string{"User-Agent", browser, "Sec-Fetch-Site", "same-origin"}, 200},
		"browser, own page, old":      {list, []string{"User-Agent", browser, "Referer", "http://" + address + "/page"}, 200},
		"browser, typed":              {list, []string{"User-Agent", browser, "Sec-Fetch-Site", "none"}, 200},
		"browser, image":              {list, []string{"User-Agent", browser, "Sec-Fetch-Site", "cross-site"}, 403},
		"browser, sibling":            {list, []string{"User-Agent", browser, "Sec-Fetch-Site", "same-site"}, 403},
		"browser, allowed page":       {list, []string{"User-Agent", browser, "Origin", "https://app.example"}, 200},
		"browser, content type":       {list, []string{"User-Agent", browser, "Content-Type", "application/json"}, 200},
		"browser, no effects":         {get, []string{"User-Agent", browser}, 200},
		"image, no effects":           {get, []string{"User-Agent", browser, "Sec-Fetch-Site", "cross-site"}, 403},
		"rebound name":                {get, []string{"User-Agent", browser, "Host", "evil.example"}, 403},
		"empty POST, curl":            {archive, nil, 200},
		"empty POST, browser":         {archive, []string{"User-Agent", browser}, 403},
		"empty POST, other page":      {archive, []string{"User-Agent", browser, "Origin", "https://evil.example"}, 403},
		"empty POST, allowed page":    {archive, []string{"User-Agent", browser, "Origin", "https://app.example"}, 200},
		"form":                        {archive, []string{"User-Agent", browser, "Content-Type", "application/x-www-form-urlencoded"}, 415},
		"form of the own page":        {archive, []string{"User-Agent", browser, "Content-Type", "text/plain", "Origin", "http://" + address}, 415},
		"DELETE of other page":        {"DELETE /v1/shelves/1/books/2", []string{"User-Agent", browser, "Origin", "https://evil.example"}, 403},
		"preflight":                   {"OPTIONS /v1/shelves/1/books/2", []string{"Origin", "https://app.example", "Access-Control-Request-Method", "DELETE"}, 204},
		"preflight of other page":     {"OPTIONS /v1/shelves/1/books/2", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "DELETE"}, 403},
		"method override is no thing": {get, []string{"X-HTTP-Method-Override", "DELETE"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			transport := new(http.Transport)
			defer transport.CloseIdleConnections()
			method, path, _ := strings.Cut(row.request, " ")
			r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(row.headers); i += 2 {
				if row.headers[i] == "Host" {
					r.Host = row.headers[i+1]
				}
				r.Header.Set(row.headers[i], row.headers[i+1])
			}
			before := l.Calls.Load()
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != row.status {
				t.Errorf("the status is %d, want %d: %s", resp.StatusCode, row.status, body)
			}
			if called := l.Calls.Load() > before; called != (row.status == 200) {
				t.Errorf("the method was called: %v", called)
			}
			if method == "OPTIONS" && row.status == 204 && !strings.Contains(resp.Header.Get("Access-Control-Allow-Methods"), "DELETE") {
				t.Errorf("the preflight allows %q", resp.Header.Get("Access-Control-Allow-Methods"))
			}
		})
	}
}

// The policy is about the method, by whatever path it is called.
func TestPolicyOfAnnotations(t *testing.T) {
	token := auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "reader", SHA256: auth.Digest(token)})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := auth.NewPolicy(auth.Rules{Allow: []auth.Rule{{Subjects: []string{"reader"}, Methods: []string{"test.library.v1.Library.GetBook"}}}})
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, addLibrary(new(sample.Library)), anser.Authenticate(tokens), anser.Authorize(policy))
	for version, c := range versions(t) {
		for request, want := range map[string]int{
			"GET /v1/books/a": 200, "GET /v1/shelves/1/books/2:title": 200, "GET /v1/books": 403, "DELETE /v1/shelves/1/books/2": 403,
			"POST /v1/shelves/1/x/2:archive": 403, "GET /v1/shelves/7/books:watch": 403,
		} {
			method, path, _ := strings.Cut(request, " ")
			if resp, body := ask(t, c, method, address, path, "", "Authorization", "Bearer "+token); resp.StatusCode != want {
				t.Errorf("%s: %s is answered with %d %s, want %d", version, request, resp.StatusCode, body, want)
			}
			if resp, _ := ask(t, c, method, address, path, ""); resp.StatusCode != 401 {
				t.Errorf("%s: %s without a token is answered with %d", version, request, resp.StatusCode)
			}
		}
	}
}

// Two methods with the same path are found before the server serves.
func TestAnnotationsExcludeEachOther(t *testing.T) {
	s := anser.NewServer(protocols.All(), anser.NoSignals(), silent)
	addLibrary(new(sample.Library))(s)
	librarypb.RegisterRivalServer(s, new(librarypb.UnimplementedRivalServer))
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	err = s.Serve(l)
	for _, part := range []string{"the server cannot serve", "test.rival.v1.Rival.Get", "GET /v1/books/{name} of test.library.v1.Library.GetBook"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("Serve: %v, want %q", err, part)
		}
	}
}

// Methods that are added to a server that serves get their paths, except the ones that are taken.
func TestAnnotationsOfLateMethods(t *testing.T) {
	s, address := start(t, addLibrary(new(sample.Library)))
	for _, c := range versions(t) {
		if resp, _ := ask(t, c, "GET", address, "/v1/rival/x", ""); resp.StatusCode != 404 {
			t.Errorf("before it is there, the status is %d", resp.StatusCode)
		}
	}
	librarypb.RegisterRivalServer(s, new(librarypb.UnimplementedRivalServer))
	for _, c := range versions(t) {
		if resp, _ := ask(t, c, "GET", address, "/v1/rival/x", ""); resp.StatusCode != 501 {
			t.Errorf("after that, the status is %d", resp.StatusCode)
		}
		if resp, _ := ask(t, c, "GET", address, "/v1/books/x", ""); resp.StatusCode != 200 {
			t.Errorf("the path that was taken is answered with %d", resp.StatusCode)
		}
	}
}
