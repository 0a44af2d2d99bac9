package protocols_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/internal/test/protocols/librarypb"
	"github.com/anser-rpc/anser/internal/test/protocols/sample"
	"github.com/anser-rpc/anser/protocols"
)

// fetch sends a request with headers, which are pairs.
func fetch(t *testing.T, c http.RoundTripper, method, url, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	if r.Header["Accept-Encoding"] == nil {
		r.Header.Set("Accept-Encoding", "identity") // else the client unpacks by itself
	}
	resp, err := c.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// shelf answers with what depends on its caller.
type shelf struct {
	sample.Library
	events int
}

func (s *shelf) GetBook(ctx context.Context, in *librarypb.GetBookRequest) (*librarypb.Book, error) {
	title := strings.Repeat("T", 1000)
	if id := anser.IdentityFrom(ctx); id != nil {
		title = id.Subject
	}
	return &librarypb.Book{Name: in.Name, Title: title, Pages: 1 << 60}, nil
}

// Watch counts from the event that the client has seen.
func (s *shelf) Watch(ctx context.Context, in *librarypb.ListBooksRequest, out anser.Sender[librarypb.Book]) error {
	next := 0
	if last := protocols.LastEventID(ctx); last != "" {
		n, err := strconv.Atoi(last)
		if err != nil {
			return anser.Errorf(anser.InvalidArgument, "the event %q is not known", last)
		}
		next = n + 1
	}
	if err := protocols.SetEventID(ctx, "a\nb"); err == nil {
		return anser.Errorf(anser.Internal, "an id with a line break is taken")
	}
	for i := next; i < s.events; i++ {
		protocols.SetEventID(ctx, strconv.Itoa(i))
		if err := out.Send(&librarypb.Book{Name: in.Shelf, Pages: int64(i)}); err != nil {
			return err
		}
	}
	return nil
}

// Replies of methods without side effects have an entity tag, and are not sent again to a client
// that has them. No cache may give them to another caller.
func TestEntityTags(t *testing.T) {
	for version, c := range versions(t) {
		t.Run(version, func(t *testing.T) { testEntityTags(t, c) })
	}
}

func testEntityTags(t *testing.T, c http.RoundTripper) {
	one, two := auth.NewToken(), auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest(one)}, auth.Grant{Subject: "bob", SHA256: auth.Digest(two)})
	if err != nil {
		t.Fatal(err)
	}
	add := func(s *anser.Server) { librarypb.RegisterLibraryServer(s, new(shelf)) }
	open := "http://" + serve(t, add)
	const path = "/v1/shelves/1/books/2"
	first := fetch(t, c, "GET", open+path, "")
	whole, tag := read(t, first), first.Header.Get("ETag")
	if first.StatusCode != 200 || len(tag) < 20 || tag[0] != '"' || first.Header.Get("Cache-Control") != "private, no-cache" || !strings.Contains(first.Header.Get("Vary"), "Authorization") {
		t.Fatalf("%d %v", first.StatusCode, first.Header)
	}
	for name, row := range map[string]struct {
		method, path, match, encoding string
		status                        int
		same                          bool
	}{
		"again":        {"GET", path, "", "", 200, true},
		"same":         {"GET", path, tag, "", 304, true},
		"weak":         {"GET", path, "W/" + tag, "", 304, true},
		"in a list":    {"GET", path, `"x", ` + tag, "", 304, true},
		"any":          {"GET", path, "*", "", 304, true},
		"other":        {"GET", path, `"x"`, "", 200, true},
		"HEAD":         {"HEAD", path, "", "", 200, true},
		"HEAD, same":   {"HEAD", path, tag, "", 304, true},
		"other book":   {"GET", "/v1/shelves/1/books/3", tag, "", 200, false},
		"compressed":   {"GET", path, tag, "gzip", 200, false},
		"Connect":      {"GET", "/test.library.v1.Library/GetBook?encoding=json&message=%7B%22name%22%3A%22shelves/1/books/2%22%7D", tag, "", 304, true},
		"not that one": {"GET", path, tag, "gzip;q=0", 304, true},
	} {
		resp := fetch(t, c, row.method, open+row.path, "", "If-None-Match", row.match, "Accept-Encoding", row.encoding)
		got := read(t, resp)
		if resp.StatusCode != row.status || (resp.Header.Get("ETag") == tag) != row.same {
			t.Errorf("%s: %d %v", name, resp.StatusCode, resp.Header)
		}
		switch {
		case resp.StatusCode == 304 || row.method == "HEAD":
			if got != "" {
				t.Errorf("%s: the answer has a body: %s", name, got)
			}
		case row.encoding == "gzip":
			z, err := gzip.NewReader(strings.NewReader(got))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if b, err := io.ReadAll(z); string(b) != whole || err != nil {
				t.Errorf("%s: %s, %v", name, b, err)
			}
			packed := resp.Header.Get("ETag")
			if resp := fetch(t, c, "GET", open+path, "", "If-None-Match", packed, "Accept-Encoding", "gzip"); resp.StatusCode != 304 || resp.Header.Get("ETag") != packed {
				t.Errorf("%s, same: %d %v", name, resp.StatusCode, resp.Header)
			}
		}
	}
	if resp := fetch(t, c, "GET", open+"/v1/books", ""); resp.Header.Get("ETag") != "" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("a method that may have side effects: %v", resp.Header)
	}
	if resp := fetch(t, c, "POST", open+"/test.library.v1.Library.GetBook", `{}`); resp.Header.Get("ETag") != "" {
		t.Errorf("POST: %v", resp.Header)
	}
	if resp := fetch(t, c, "GET", open+"/v1/shelves/1/books/x/y", ""); resp.StatusCode == 200 {
		t.Errorf("%v", resp.Header)
	}

	closed := "http://" + serve(t, add, anser.Authenticate(tokens))
	ann := fetch(t, c, "GET", closed+path, "", "Authorization", "Bearer "+one)
	if got := read(t, ann); !strings.Contains(got, "ann") {
		t.Error(got)
	}
	bob := fetch(t, c, "GET", closed+path, "", "Authorization", "Bearer "+two, "If-None-Match", ann.Header.Get("ETag"))
	if got := read(t, bob); bob.StatusCode != 200 || !strings.Contains(got, "bob") {
		t.Errorf("another caller: %d %s", bob.StatusCode, got)
	}
	if none := fetch(t, c, "GET", closed+path, "", "If-None-Match", ann.Header.Get("ETag")); none.StatusCode != 401 || none.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("no caller: %d %v", none.StatusCode, none.Header)
	}
}

// The program says for how long replies may be kept.
func TestCacheControl(t *testing.T) {
	c := versions(t)["HTTP/1.1"]
	serving := func(methods ...string) (*anser.Server, error) {
		s := anser.NewServer(anser.NoSignals(), silent, protocols.All(protocols.CacheControl("public, max-age=60", methods...)))
		librarypb.RegisterLibraryServer(s, new(shelf))
		l, err := s.Listen("127.0.0.1:0")
		if err != nil {
			return s, err
		}
		t.Cleanup(func() { s.Close() })
		return s, s.Serve(l)
	}
	for name, methods := range map[string][]string{
		"no method":         {},
		"unknown method":    {"test.library.v1.Library.Nothing"},
		"with side effects": {"test.library.v1.Library.CreateBook"},
		"a stream":          {"test.library.v1.Library.Watch"},
	} {
		if _, err := serving(methods...); err == nil || !strings.Contains(err.Error(), "protocols.CacheControl") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := anser.NewServer(anser.NoSignals(), silent, protocols.All(protocols.CacheControl("public, max-age=60", "test.library.v1.Library.GetBook")))
	librarypb.RegisterLibraryServer(s, new(shelf))
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	defer func() {
		s.Close()
		<-done
	}()
	if got := fetch(t, c, "GET", "http://"+l.Addr().String()+"/v1/shelves/1/books/2", "").Header.Get("Cache-Control"); got != "public, max-age=60" {
		t.Errorf("Cache-Control is %q", got)
	}
}

// eventSource reads events as a browser does (WHATWG HTML, server-sent events): it connects again
// with the id of the last event when the connection is lost, which happens after two events, and
// not after the status 204.
type eventSource struct {
	url    string
	lastID string
	events []string // kind, id and data
}

func (e *eventSource) run(t *testing.T, c http.RoundTripper) {
	for range 10 {
		headers := []string{"Accept", "text/event-stream", "Sec-Fetch-Site", "same-origin"}
		if e.lastID != "" {
			headers = append(headers, "Last-Event-ID", e.lastID)
		}
		resp := fetch(t, c, "GET", e.url, "", headers...)
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			e.events = append(e.events, fmt.Sprint(resp.StatusCode))
			return
		}
		kind, data, id, seen := "message", "", e.lastID, 0
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			field, value, _ := strings.Cut(in.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch field {
			case "event":
				kind = value
			case "data":
				data += value
			case "id":
				id = value
			case "":
				e.lastID = id
				e.events = append(e.events, kind+" "+id+" "+data)
				if kind == "end" { // the page closes it
					return
				}
				kind, data = "message", ""
				seen++
			}
			if seen == 2 { // the connection is lost
				resp.Body.Close()
				break
			}
		}
	}
}

// A client of events that has lost its connection goes on after the last event that it has seen.
func TestLastEventID(t *testing.T) {
	for version, c := range versions(t) {
		t.Run(version, func(t *testing.T) { testLastEventID(t, c) })
	}
}

func testLastEventID(t *testing.T, c http.RoundTripper) {
	for events, want := range map[int][]string{
		5: {`message 0 {"name":"1"}`, `message 1 {"name":"1","pages":"1"}`, `message 2 {"name":"1","pages":"2"}`, `message 3 {"name":"1","pages":"3"}`, `message 4 {"name":"1","pages":"4"}`, "end 4 {}"},
		4: {`message 0 {"name":"1"}`, `message 1 {"name":"1","pages":"1"}`, `message 2 {"name":"1","pages":"2"}`, `message 3 {"name":"1","pages":"3"}`, "204"},
		0: {"end  {}"},
	} {
		address := serve(t, func(s *anser.Server) { librarypb.RegisterLibraryServer(s, &shelf{events: events}) })
		e := &eventSource{url: "http://" + address + "/v1/shelves/1/books:watch"}
		e.run(t, c)
		if fmt.Sprint(compactAll(e.events)) != fmt.Sprint(want) {
			t.Errorf("%d events: %q, want %q", events, e.events, want)
		}
		bad := fetch(t, c, "GET", e.url, "", "Accept", "text/event-stream", "Last-Event-ID", "x")
		if read(t, bad); bad.StatusCode != 400 {
			t.Errorf("an unknown id: %d", bad.StatusCode)
		}
	}
}

// compactAll takes out the spaces that JSON of protobuf has at random.
func compactAll(list []string) (out []string) {
	for _, s := range list {
		out = append(out, strings.NewReplacer(`", "`, `","`, `: `, `:`).Replace(s))
	}
	return out
}

// What clients may say of forms, encodings and JSON, and what they get.
func TestNegotiation(t *testing.T) {
	for version, c := range versions(t) {
		t.Run(version, func(t *testing.T) { testNegotiation(t, c) })
	}
}

func testNegotiation(t *testing.T, c http.RoundTripper) {
	address := "http://" + serve(t, func(s *anser.Server) { librarypb.RegisterLibraryServer(s, new(sample.Library)) }, anser.MaxMessage(100_000))
	const create, list, watch = "/v1/shelves/1/books", "/test.library.v1.Library.ListBooks", "/v1/shelves/1/books:watch"
	packed := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, text)
		z.Close()
		return b.String()
	}
	for name, row := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		answer             string // a part of it
		header, value      string
	}{
		"accepts all":            {"GET", "/v1/shelves/1/books/2", "", []string{"Accept", "*/*"}, 200, `"name"`, "Content-Type", "application/json"},
		"accepts application":    {"GET", "/v1/shelves/1/books/2", "", []string{"Accept", "text/html, application/*;q=0.1"}, 200, "", "Content-Type", "application/json"},
		"accepts HTML only":      {"GET", "/v1/shelves/1/books/2", "", []string{"Accept", "text/html"}, 406, "accept application/json", "Content-Type", "application/problem+json"},
		"accepts no JSON":        {"GET", "/v1/shelves/1/books/2", "", []string{"Accept", "application/json;q=0, */*"}, 406, "", "", ""},
		"picture":                {"GET", "/v1/shelves/1/books/2/cover", "", []string{"Accept", "image/png"}, 200, "", "", ""},
		"stream, default":        {"GET", watch, "", nil, 200, "", "Content-Type", "application/x-ndjson"},
		"stream, by quality":     {"GET", watch, "", []string{"Accept", "application/json;q=0.5, text/event-stream;q=0.9, */*;q=0.1"}, 200, "", "Content-Type", "text/event-stream"},
		"stream, specific":       {"GET", watch, "", []string{"Accept", "application/*;q=0.3, application/json;q=0.8"}, 200, "", "Content-Type", "application/json"},
		"stream, first of equal": {"GET", watch, "", []string{"Accept", "application/json, application/x-ndjson"}, 200, "", "Content-Type", "application/json"},
		"stream, none":           {"GET", watch, "", []string{"Accept", "text/html"}, 406, "", "", ""},
		"charset":                {"POST", list, `{}`, []string{"Content-Type", "application/json; charset=UTF-8"}, 200, "", "", ""},
		"other charset":          {"POST", list, `{}`, []string{"Content-Type", "application/json; charset=iso-8859-1"}, 415, "UTF-8", "", ""},
		"form":                   {"POST", list, `{}`, []string{"Content-Type", "text/plain"}, 415, "", "Accept-Post", "application/json"},
		"GET":                    {"GET", list, "", nil, 405, "", "Allow", "POST"},
		"OPTIONS":                {"OPTIONS", list, "", nil, 204, "", "Allow", "OPTIONS, POST"},
		"OPTIONS of a path":      {"OPTIONS", "/v1/books/x", "", nil, 204, "", "Allow", "GET, HEAD, OPTIONS"},
		"DELETE of a path":       {"DELETE", "/v1/books/x", "", nil, 405, "", "Allow", "GET, HEAD, OPTIONS"},
		"HEAD":                   {"HEAD", "/v1/books/x", "", nil, 200, "", "Content-Type", "application/json"},
		"no path":                {"GET", "/v2/books", "", nil, 404, "", "", ""},
		"gzip":                   {"POST", list, packed(`{"shelf":"7"}`), []string{"Content-Encoding", "gzip"}, 200, `\"7\"`, "", ""},
		"gzip of nothing":        {"POST", list, "x", []string{"Content-Encoding", "gzip"}, 400, "decompress", "", ""},
		"bomb":                   {"POST", list, packed(`{"shelf":"` + strings.Repeat("x", 200_000) + `"}`), []string{"Content-Encoding", "gzip"}, 413, "MaxMessage", "", ""},
		"brotli":                 {"POST", list, `{}`, []string{"Content-Encoding", "br"}, 415, "", "Accept-Encoding", "gzip"},
		"gzip twice":             {"POST", list, `{}`, []string{"Content-Encoding", "gzip, gzip"}, 415, "", "", ""},
		"identity":               {"POST", list, `{}`, []string{"Content-Encoding", "identity"}, 200, "", "", ""},
		"large":                  {"POST", list, `{"shelf":"` + strings.Repeat("x", 200_000) + `"}`, nil, 413, "MaxMessage", "", ""},
		"int64 as text":          {"POST", create, `{"pages":"1152921504606846976"}`, nil, 200, `"1152921504606846976"`, "", ""},
		"int64 as number":        {"POST", create, `{"pages":12}`, nil, 200, `"12"`, "", ""},
		"int64 too large":        {"POST", create, `{"pages":"9223372036854775808"}`, nil, 400, "", "", ""},
		"not a whole number":     {"POST", create, `{"pages":1.5}`, nil, 400, "", "", ""},
		"unknown field":          {"POST", create, `{"titel":"x"}`, nil, 400, `did you mean \"title\"?`, "", ""},
		"unknown value":          {"POST", create, `{"genre":"NOVLE"}`, nil, 400, "NOVLE", "", ""},
		"key twice":              {"POST", create, `{"title":"x","title":"y"}`, nil, 400, "title", "", ""},
		"two names of a field":   {"POST", list, `{"pageSize":1,"page_size":2}`, nil, 400, "", "", ""},
		"text after":             {"POST", list, `{} {}`, nil, 400, "", "", ""},
		"not UTF-8":              {"POST", list, "{\"shelf\":\"\xff\"}", nil, 400, "", "", ""},
		"cookie":                 {"GET", "/v1/shelves/1/books/2", "", []string{"Cookie", "a=b"}, 200, "", "Set-Cookie", ""},
	} {
		resp := fetch(t, c, row.method, address+row.path, row.body, row.headers...)
		got := read(t, resp)
		if resp.StatusCode != row.status || !strings.Contains(got, row.answer) || row.header != "" && resp.Header.Get(row.header) != row.value {
			t.Errorf("%s: %d %v %.300s, want %d", name, resp.StatusCode, resp.Header, got, row.status)
		}
		if kind := resp.Header.Get("Content-Type"); row.status >= 400 && row.status != 404 && kind != "application/problem+json" {
			t.Errorf("%s: the error is %s", name, kind)
		}
	}
}
