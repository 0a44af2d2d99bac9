package transcode_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/protocols/internal/transcode"
)

// What the grammar of google.api.HttpRule takes, and what it does not.
func TestTemplates(t *testing.T) {
	for text, want := range map[string]string{ // the shape, and the variables
		"/":                                "/",
		"/v1/shelves":                      "/v1/shelves",
		"/v1/shelves/{shelf}":              "/v1/shelves/* shelf=*",
		"/v1/{name=shelves/*}":             "/v1/shelves/* name=shelves/*",
		"/v1/{name=shelves/*/books/**}":    "/v1/shelves/*/books/** name=shelves/*/books/**",
		"/v1/{book.name=shelves/*}:read":   "/v1/shelves/*:read book.name=shelves/*",
		"/v1/{a}/x/{b}:go":                 "/v1/*/x/*:go a=* b=*",
		"/v1/*/x/**":                       "/v1/*/x/**",
		"/v1/{name=**}:cancel":             "/v1/**:cancel name=**",
		"/v1/a:b/c:d":                      "/v1/a:b/c:d",
		"/v1/messages:batchGet":            "/v1/messages:batchGet",
		"/v1/{a_1}/{b=projects/*/zones/*}": "/v1/*/projects/*/zones/* a_1=* b=projects/*/zones/*",
	} {
		got, err := transcode.ParseTemplate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		shape := got.Shape()
		for _, v := range got.Variables() {
			shape += " " + v.Field + "=" + v.Pattern
		}
		if shape != want {
			t.Errorf("%s is %s, want %s", text, shape, want)
		}
		if got.String() != text {
			t.Errorf("%s is written as %s", text, got)
		}
	}
	for _, text := range []string{
		"", "v1", "//", "/v1/", "/v1//x", "/v1/{", "/v1/{}", "/v1/{a", "/v1/a}", "/v1/{a}b", "/v1/b{a}", "/v1/{a=}", "/v1/{a=x/}", "/v1/{a=/x}",
		"/v1/{a={b}}", "/v1/**/x", "/v1/{a=**}/x", "/v1/{a=**/x}", "/v1/{a}/{a}", "/v1/{a.}", "/v1/{.a}", "/v1/{1a}", "/v1/{a-b}", "/v1/***", "/v1/a*",
		"/v1/a%20b", "/v1/a b", "/v1/ä", "/v1/.", "/v1/..", "/v1/../x", "/v1/a:", "/v1/{a}:", "/v1/{a}:b:c", "/v1/{a}:b/c", "/v1/x?y", "/v1/{a=x:y}",
	} {
		if got, err := transcode.ParseTemplate(text); err == nil {
			t.Errorf("%q is taken as %s", text, got.Shape())
		} else if !strings.Contains(err.Error(), "path template") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The path of OpenAPI has a name for each wildcard.
func TestPathsOfOpenAPI(t *testing.T) {
	for text, want := range map[string]string{
		"/v1/shelves/{shelf}":           "/v1/shelves/{shelf} [shelf]",
		"/v1/{name=shelves/*/books/**}": "/v1/shelves/{shelf}/books/{book} [shelf book]",
		"/v1/{name=x/*/x/*}/{x}":        "/v1/x/{x}/x/{x_2}/{x_3} [x x_2 x_3]",
		"/v1/{name=**}":                 "/v1/{name} [name]",
		"/v1/{a.b=cities/*/*}":          "/v1/cities/{city}/{a.b} [city a.b]",
		"/v1/*/{a}:go":                  "/v1/{path}/{a}:go [path a]",
		"/":                             "/ []",
	} {
		tmpl, err := transcode.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		parts := tmpl.Parts()
		names := make([]string, len(parts))
		for i, p := range parts {
			names[i] = p.Name
		}
		path := tmpl.Path(names)
		if got := path + " [" + strings.Join(names, " ") + "]"; got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// router has routes whose values are their templates.
func router(t testing.TB, routes ...string) *transcode.Router[string] {
	t.Helper()
	r := new(transcode.Router[string])
	for _, route := range routes {
		method, text, _ := strings.Cut(route, " ")
		tmpl, err := transcode.ParseTemplate(text)
		if err == nil {
			err = r.Add(method, tmpl, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

var library = []string{
	"GET /v1/shelves", "GET /v1/shelves/{id}", "GET /v1/shelves/top", "POST /v1/shelves/{id}", "DELETE /v1/shelves/{id}", "GET /v1/{name=shelves/*/books/*}",
	"GET /v1/{name=shelves/*/books/*}:text", "POST /v1/{name=shelves/**}:cancel", "GET /v1/files/{path=**}", "* /v1/any/{x}", "PUT /v1/any/{x}", "GET /",
}

// The most special route matches, and each value is what the escaped path says.
func TestMatch(t *testing.T) {
	r := router(t, library...)
	for request, want := range map[string]string{
		"GET /":                             "/",
		"GET /v1/shelves":                   "/v1/shelves",
		"GET /v1/shelves/top":               "/v1/shelves/top",
		"POST /v1/shelves/top":              "/v1/shelves/{id} top",
		"GET /v1/shelves/7":                 "/v1/shelves/{id} 7",
		"GET /v1/shelves/a:b":               "/v1/shelves/{id} a:b",
		"GET /v1/shelves/a%2Fb%20c":         "/v1/shelves/{id} a/b c",
		"GET /v1/shelves/%74op":             "/v1/shelves/{id} top", // a value, not the literal
		"GET /v1/shelves/a;b=c":             "/v1/shelves/{id} a;b=c",
		"GET /v1/shelves/%2541":             "/v1/shelves/{id} %41",
		"GET /v1/shelves/gr%C3%BCn":         "/v1/shelves/{id} grün",
		"GET /v1/shelves/1/books/2":         "/v1/{name=shelves/*/books/*} shelves/1/books/2",
		"GET /v1/shelves/1/books/2:text":    "/v1/{name=shelves/*/books/*}:text shelves/1/books/2",
		"GET /v1/shelves/1/books/2%3Atext":  "/v1/{name=shelves/*/books/*} shelves/1/books/2:text",
		"GET /v1/shelves/1%2f2/books/a%20b": "/v1/{name=shelves/*/books/*} shelves/1%2f2/books/a b",
		"POST /v1/shelves/1/x/2:cancel":     "/v1/{name=shelves/**}:cancel shelves/1/x/2",
		"GET /v1/files":                     "/v1/files/{path=**} ",
		"GET /v1/files/a/b/c":               "/v1/files/{path=**} a/b/c",
		"PATCH /v1/any/1":                   "/v1/any/{x} 1",
		// Nothing matches, or the path is bound to other methods.
		"PUT /v1/shelves/top":           "! DELETE,GET,POST",
		"POST /v1/files/a":              "! GET",
		"GET /v1":                       "!",
		"GET /v2/shelves":               "!",
		"GET /v1/shelves/":              "!",
		"GET /v1//shelves":              "!",
		"GET //v1/shelves":              "!",
		"GET /V1/shelves":               "!",
		"GET /v1/Shelves":               "!",
		"GET /v1/%73helves":             "!",
		"GET /v1%2Fshelves":             "!",
		"GET /v1/shelves%00":            "!",
		"GET /v1/shelves/%00":           "!",
		"GET /v1/shelves/a%0Ab":         "!",
		"GET /v1/shelves/%FF":           "!",
		"GET /v1/shelves/.":             "!",
		"GET /v1/shelves/..":            "!",
		"GET /v1/shelves/%2e%2E":        "!",
		"GET /v1/x/../shelves":          "!",
		"GET /v1/files/a/../../shelves": "!",
		"GET /v1/files/a//b":            "!",
		"GET /v1/shelves/%4":            "!",
		"GET /v1/shelves/%zz":           "!",
		"GET /v1/shelves;x":             "!",
		"GET v1/shelves":                "!",
		"GET ":                          "!",
		"get /v1/shelves":               "! GET",
	} {
		method, path, _ := strings.Cut(request, " ")
		value, values, ok, allowed := r.Match(method, path)
		got := "! " + strings.Join(allowed, ",")
		if ok {
			got = value + " " + strings.Join(values, " ")
		}
		if strings.TrimRight(got, " ") != strings.TrimRight(want, " ") {
			t.Errorf("%s is %q, want %q", request, got, want)
		}
	}
	if _, _, ok, _ := r.Match("GET", "/v1/files"+strings.Repeat("/a", 2000)); ok {
		t.Error("a path of 2,000 segments matches")
	}
}

// Two rules for the same paths are a mistake, whatever the names of their variables are.
func TestConflicts(t *testing.T) {
	r := router(t, library...)
	for route, conflict := range map[string]bool{
		"GET /v1/shelves/{other}":      true,
		"GET /v1/{x=shelves/*}":        true,
		"* /v1/any/{y}":                true,
		"GET /v1/files/**":             true,
		"PATCH /v1/shelves/{id}":       false,
		"GET /v1/shelves/{id}:archive": false,
		"* /v1/shelves/{id}":           false,
	} {
		method, text, _ := strings.Cut(route, " ")
		tmpl, err := transcode.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Add(method, tmpl, "second"); (err != nil) != conflict {
			t.Errorf("%s: %v", route, err)
		}
	}
}

// A template that is taken matches the paths that are made from it, with the values that were put
// in; and whatever matches has the shape of the template.
func FuzzTemplate(f *testing.F) {
	for _, route := range library {
		_, text, _ := strings.Cut(route, " ")
		f.Add(text, "/v1/shelves/1/books/2:text", "a b")
	}
	f.Add("/v1/{name=shelves/**}:cancel", "/v1/shelves/%2e%2e/x:cancel", "..")
	f.Add("/v1/{a.b}/{c=*/x}", "/v1/%41/b/x", "a/b")
	f.Fuzz(func(t *testing.T, text, path, value string) {
		tmpl, err := transcode.ParseTemplate(text)
		if err != nil {
			return
		}
		again, err := transcode.ParseTemplate(tmpl.Shape())
		if err != nil || again.Shape() != tmpl.Shape() {
			t.Fatalf("the shape %q of %q: %v", tmpl.Shape(), text, err)
		}
		r := new(transcode.Router[int])
		if err := r.Add("GET", tmpl, 1); err != nil {
			t.Fatal(err)
		}
		if r.Add("GET", again, 2) == nil {
			t.Fatalf("%q and %q do not exclude each other", text, again)
		}
		_, values, ok, _ := r.Match("GET", path)
		if ok && len(values) != len(tmpl.Variables()) {
			t.Fatalf("%q has the values %q in %q", text, values, path)
		}
		if ok && (strings.Contains(path, "//") || slices.Contains(strings.Split(strings.ToLower(path), "/"), "%2e%2e")) {
			t.Fatalf("%q matches %q", text, path)
		}
		var escaped strings.Builder
		for i := range len(value) {
			const hex = "0123456789ABCDEF"
			escaped.WriteString("%" + string(hex[value[i]>>4]) + string(hex[value[i]&15]))
		}
		shape := tmpl.Shape()
		made := strings.ReplaceAll(strings.ReplaceAll(shape, "**", "*"), "*", escaped.String())
		_, values, ok, _ = r.Match("GET", made)
		if !ok {
			return // a value that no path can have
		}
		for i, v := range tmpl.Variables() {
			if v.Pattern == "*" && values[i] != value {
				t.Fatalf("%s of %q is %q in %q, want %q", v.Field, text, values[i], made, value)
			}
		}
	})
}
