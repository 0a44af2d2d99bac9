package protocols_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/test/protocols/sample"
)

// Messages of proto2: required fields, defaults, groups and extensions are as the server takes
// them.
func TestOpenAPIOfProto2(t *testing.T) {
	address := serve(t, sample.Add)
	d := readOpenAPI(t, address)
	s := schemasOf(t, d)
	in := s.at(t, "paths", "/test.old.v1.Olds.Echo", "post", "requestBody", "content", "application/json", "schema")
	out := s.at(t, "paths", "/test.old.v1.Olds.Echo", "post", "responses", "200", "content", "application/json", "schema")
	c := new(http.Transport)
	defer c.CloseIdleConnections()
	for body, status := range map[string]int{
		`{"name":""}`: 200,
		`{"name":"a","count":"7","mood":"BAD","ratio":"NaN"}`:  200,
		`{"name":"a","part":{"size":3},"item":[{"word":"x"}]}`: 200,
		`{"name":"a","[test.old.v1.colour]":"red"}`:            200,
		`{"name":"a","[test.old.v1.more]":[{"name":"b"}]}`:     200,
		`{}`:                                     400,
		`{"name":"a","part":{}}`:                 400,
		`{"name":"a","item":{"word":"x"}}`:       400,
		`{"name":"a","[test.old.v1.colour]":5}`:  400,
		`{"name":"a","[test.old.v1.more]":[{}]}`: 400,
		`{"name":"a","mood":"FINE"}`:             400,
	} {
		resp, got := ask(t, c, "POST", address, "/test.old.v1.Olds.Echo", body)
		if resp.StatusCode != status {
			t.Errorf("%s is answered with %d %s", body, resp.StatusCode, got)
		}
		if err := in.Validate(valueOf(t, []byte(body))); (err == nil) != (status == 200) {
			t.Errorf("%s by the schema: %v", body, err)
		}
		if status == 200 {
			if err := out.Validate(valueOf(t, []byte(got))); err != nil {
				t.Errorf("the reply %s: %v", got, err)
			}
		}
	}
	if resp, got := ask(t, c, "POST", address, "/test.old.v1.Olds.Echo", `{"name":"a","[test.old.v1.size]":5}`); resp.StatusCode != 400 {
		t.Errorf("an extension that is not known: %d %s", resp.StatusCode, got)
	}
	properties := d.values["components"].(map[string]any)["schemas"].(map[string]any)["test.old.v1.Old"].(map[string]any)["properties"].(map[string]any)
	for name, want := range map[string]any{
		"name": nil, "count": "7", "greeting": `hello "you"`, "blob": "Af8=", "mood": "GOOD", "ratio": nil, "on": true, "part": nil, "[test.old.v1.colour]": nil,
	} {
		p, ok := properties[name].(map[string]any)
		if got := p["default"]; !ok || got != want {
			t.Errorf("the default of %s is %v, want %v", name, got, want)
		}
	}
}

// The document says what the headers of calls can do, and how WebSockets are opened.
func TestOpenAPIOfHeadersAndSockets(t *testing.T) {
	d := readOpenAPI(t, serve(t, sample.Add))
	has := func(verb, path, parameter, status string) bool {
		op := d.Paths[path][verb]
		if op == nil {
			t.Fatalf("there is no %s %s", verb, path)
		}
		_, answers := op.Responses[status]
		refers := false
		for _, p := range op.Parameters {
			refers = refers || strings.HasSuffix(p.Ref, "/"+parameter)
		}
		return refers || answers
	}
	for _, row := range []struct {
		verb, path, parameter, status string
		want                          bool
	}{
		{"post", "/Things.Once", "IdempotencyKey", "", true},
		{"post", "/Things.Once", "AnserRepeated", "", true},
		{"post", "/Mail.Send", "IdempotencyKey", "", false},
		{"get", "/v1/shelves/{shelf}/books/{book}", "IfNoneMatch", "", true},
		{"get", "/v1/shelves/{shelf}/books/{book}", "", "304", true},
		{"get", "/v1/shelves/{shelf}/books/{book}/cover", "", "304", true},
		{"get", "/v1/shelves/{shelf}/books:watch", "IfNoneMatch", "304", false},
		{"get", "/v1/shelves/{shelf}/books:watch", "", "101", true},
		{"post", "/test.library.v1.Library.GetBook", "IfNoneMatch", "304", false},
		{"post", "/test.kinds.v1.Kinds.Chat", "", "101", true},
		{"post", "/Things.Count", "", "101", true},
		{"post", "/Things.Echo", "", "101", false},
	} {
		if got := has(row.verb, row.path, row.parameter, row.status); got != row.want {
			t.Errorf("%s %s has %s%s: %v", row.verb, row.path, row.parameter, row.status, got)
		}
	}
	for _, name := range []string{"IdempotencyKey", "AnserRepeated", "IfNoneMatch"} {
		if !strings.Contains(string(d.text), `"`+name+`":{`) {
			t.Errorf("there is no parameter %s", name)
		}
	}
	if chat := d.Paths["/test.kinds.v1.Kinds.Chat"]["post"]; chat.WebSocket != "anser.json" || d.Paths["/Things.Echo"]["post"].WebSocket != "" {
		t.Errorf("the subprotocol of a stream is %q", chat.WebSocket)
	}
	// What no method has is not there.
	only := readOpenAPI(t, serve(t, func(s *anser.Server) {
		anser.Handle(s, "Things.Echo", func(_ context.Context, in *sample.Letter) (*sample.Letter, error) { return in, nil })
	}))
	for _, name := range []string{"IdempotencyKey", "IfNoneMatch", "NotModified", "WebSocket"} {
		if strings.Contains(string(only.text), name) {
			t.Errorf("%s is in the document", name)
		}
	}
}
