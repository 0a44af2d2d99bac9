package protocols_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/internal/test/protocols/sample"
	"github.com/anser-rpc/anser/protocols"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// openAPI is a document as a client has it.
type openAPI struct {
	text   []byte
	Paths  map[string]map[string]*openAPIOperation
	values map[string]any
	Tags   []struct{ Name, Description string }
}

type openAPIOperation struct {
	OperationID, Summary, Description string
	Deprecated                        bool
	Method                            string `json:"x-anser-method"`
	Stream                            string `json:"x-anser-stream"`
	WebSocket                         string `json:"x-anser-websocket"`
	Parameters                        []struct {
		Name, In, Description string
		Ref                   string `json:"$ref"`
		Schema                map[string]any
	}
	RequestBody struct {
		Content map[string]openAPIMedia
	}
	Responses map[string]struct{ Content map[string]openAPIMedia }
}

type openAPIMedia struct {
	Schema  map[string]any
	Example json.RawMessage
}

func readOpenAPI(t *testing.T, address string, headers ...string) *openAPI {
	t.Helper()
	c := new(http.Transport)
	defer c.CloseIdleConnections()
	resp, text := ask(t, c, "GET", address, "/openapi.json", "", headers...)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s %s", resp.StatusCode, resp.Header.Get("Content-Type"), text)
	}
	d := &openAPI{text: []byte(text)}
	if err := json.Unmarshal(d.text, d); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(d.text, &d.values); err != nil {
		t.Fatal(err)
	}
	return d
}

// The document is valid for a validator of OpenAPI.
func TestOpenAPIIsValid(t *testing.T) {
	d := readOpenAPI(t, serve(t, sample.Add))
	model, err := libopenapi.NewDocument(d.text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.BuildV3Model(); err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(model)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, errs := v.ValidateDocument(); !ok {
		for _, e := range errs {
			t.Errorf("%s: %s %v", e.Message, e.Reason, e.SchemaValidationErrors)
		}
	}
}

// schemas compiles the schemas of a document.
type schemas struct{ *jsonschema.Compiler }

func schemasOf(t *testing.T, d *openAPI) *schemas {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.AssertContent()
	if err := c.AddResource("mem:///openapi.json", d.values); err != nil {
		t.Fatal(err)
	}
	return &schemas{c}
}

// at returns the schema at a place of the document.
func (s *schemas) at(t *testing.T, place ...string) *jsonschema.Schema {
	t.Helper()
	for i, p := range place {
		place[i] = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(p)
	}
	schema, err := s.Compile("mem:///openapi.json#/" + strings.Join(place, "/"))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func valueOf(t *testing.T, data []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	return v
}

// Each method takes the example of its request, and answers as its schema says: in all forms of
// streams, and with problems.
func TestOpenAPIIsTrue(t *testing.T) {
	address := serve(t, sample.Add)
	d := readOpenAPI(t, address)
	s := schemasOf(t, d)
	problem := s.at(t, "components", "schemas", "Problem")
	fails := map[string]int{"Things.Fail": 400, "test.library.v1.Library.CreateBook": 0}
	for _, c := range versions(t) {
		called := 0
		for path, item := range d.Paths {
			for verb, op := range item {
				if strings.Contains(path, "{") || op.Stream == "both" || op.Method == "Things.Tick" || strings.HasPrefix(op.Method, "grpc.testing.") {
					continue
				}
				called++
				for accept := range op.Responses["200"].Content {
					var body string
					headers := []string{"Accept", accept}
					for kind, m := range op.RequestBody.Content {
						if err := s.at(t, "paths", path, verb, "requestBody", "content", kind, "schema").Validate(valueOf(t, m.Example)); err != nil {
							t.Errorf("%s: the example of a request: %v", op.OperationID, err)
						}
						body, headers = string(m.Example), append(headers, "Content-Type", kind)
					}
					resp, got := ask(t, c, strings.ToUpper(verb), address, path, body, headers...)
					if resp.StatusCode != 200 {
						if resp.StatusCode != fails[op.Method] {
							t.Errorf("%s with %s is answered with %d %s", op.OperationID, body, resp.StatusCode, got)
						}
						if err := problem.Validate(valueOf(t, []byte(got))); err != nil {
							t.Errorf("%s: the problem: %v", op.OperationID, err)
						}
						continue
					}
					schema := s.at(t, "paths", path, verb, "responses", "200", "content", accept, "schema")
					if example := op.Responses["200"].Content[accept].Example; example != nil {
						if err := schema.Validate(valueOf(t, example)); err != nil {
							t.Errorf("%s: the example of a reply: %v", op.OperationID, err)
						}
					}
					for _, part := range partsOf(accept, got) {
						if err := schema.Validate(valueOf(t, part)); err != nil {
							t.Errorf("%s answers %s: %v", op.OperationID, part, err)
						}
					}
				}
			}
		}
		if called < 20 {
			t.Errorf("only %d operations were called", called)
		}
	}
}

// partsOf returns the messages of an answer.
func partsOf(kind, text string) [][]byte {
	var parts [][]byte
	switch kind {
	case "application/x-ndjson":
		for line := range strings.Lines(text) {
			parts = append(parts, []byte(line))
		}
	case "text/event-stream":
		in, event := bufio.NewScanner(strings.NewReader(text)), ""
		for in.Scan() {
			if kind, ok := strings.CutPrefix(in.Text(), "event: "); ok {
				event = kind
			}
			if data, ok := strings.CutPrefix(in.Text(), "data: "); ok && event != "end" {
				parts = append(parts, []byte(data))
			}
		}
	default:
		parts = append(parts, []byte(text))
	}
	return parts
}

// Values of plain types that are written in several ways conform to their schemas.
func TestOpenAPIOfGoValues(t *testing.T) {
	address := serve(t, sample.Add)
	d := readOpenAPI(t, address)
	s := schemasOf(t, d)
	for _, v := range []*sample.Thing{sample.Full(), {}, {Raw: json.RawMessage("null"), Number: "0"}} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range [][]string{{"requestBody"}, {"responses", "200"}} {
			place := append([]string{"paths", "/Things.Echo", "post"}, append(to, "content", "application/json", "schema")...)
			if err := s.at(t, place...).Validate(valueOf(t, data)); err != nil {
				t.Errorf("%s: %s: %v", to[0], data, err)
			}
		}
	}
	for _, wrong := range []string{
		`{"small":128}`, `{"medium":-1}`, `{"big":-1}`, `{"bytes":"%"}`, `{"fixed":[1,2]}`, `{"at":"now"}`, `{"by_number":{"x":true}}`,
		`{"quoted":5}`, `{"words":"x"}`, `{"kids":[{"small":300}]}`, `{"tree":{"a":{"b":1}}}`, `{"page":{"items":[{"id":"x"}]}}`, `{"addr":1}`, `{"truth":null}`,
	} {
		schema := s.at(t, "paths", "/Things.Echo", "post", "requestBody", "content", "application/json", "schema")
		if schema.Validate(valueOf(t, []byte(wrong))) == nil {
			t.Errorf("the schema takes %s", wrong)
		}
		c := new(http.Transport)
		if resp, _ := ask(t, c, "POST", address, "/Things.Echo", wrong); resp.StatusCode != 400 && !strings.Contains(wrong, "null") && !strings.Contains(wrong, "[1,2]") {
			t.Errorf("the server takes %s", wrong)
		}
		c.CloseIdleConnections()
	}
}

// The document has what contracts and annotations say.
func TestOpenAPISaysWhatContractsSay(t *testing.T) {
	d := readOpenAPI(t, serve(t, sample.Add))
	send, drop, old := d.Paths["/Mail.Send"]["post"], d.Paths["/Mail.Drop"]["post"], d.Paths["/test.kinds.v1.Kinds.Old"]["post"]
	if send.Summary != "Send takes a letter." || send.Description != "Send takes a letter. It is delivered later." || send.OperationID != "Mail.Send" {
		t.Errorf("a method of a contract is %+v", send)
	}
	if _, ok := drop.Responses["202"]; !ok || len(drop.Responses) != 3 || !old.Deprecated {
		t.Errorf("a oneway method answers %v; deprecated: %v", drop.Responses, old.Deprecated)
	}
	at := func(path ...string) any {
		var v any = d.values
		for _, p := range path {
			m, _ := v.(map[string]any)
			v = m[p]
		}
		return v
	}
	for _, row := range []struct {
		path string
		want any
	}{
		{"components schemas sample.Letter description", "Letter is what is sent."},
		{"components schemas sample.Letter properties to description", "to is the address."},
		{"components schemas sample.Letter properties text deprecated", true},
		{"components schemas test.library.v1.Genre description", "Genre is the kind of a book.\n\n- NOVEL: NOVEL is a long story."},
		{"components schemas test.kinds.v1.Everything properties stringValue description", "string_value is text."},
		{"components schemas test.kinds.v1.Everything properties int64Value type", "string"},
		{"components schemas test.kinds.v1.Everything properties old deprecated", true},
		{"components schemas test.kinds.v1.Everything properties @named type", "string"},
		{"components schemas test.kinds.v1.Create-Input properties id readOnly", true},
		{"components schemas test.kinds.v1.Create properties secret writeOnly", true},
		{"components schemas test.kinds.v1.Create required", nil},
		{"components parameters RequestTimeout name", "Request-Timeout"},
		{"components securitySchemes", nil},
		{"x-anser-max-message-bytes", float64(4 << 20)},
	} {
		if got := at(strings.Fields(row.path)...); fmt.Sprint(got) != fmt.Sprint(row.want) {
			t.Errorf("%s is %v, want %v", row.path, got, row.want)
		}
	}
	for _, path := range []string{"/Things.Packed", "/grpc.health.v1.Health.Check", "/Anser.Methods"} {
		if d.Paths[path] != nil {
			t.Errorf("%s is in the document", path)
		}
	}
	if want := []struct{ Name, Description string }{{"Mail", "Mail sends letters."}}; d.Tags[0] != want[0] {
		t.Errorf("the tags are %v", d.Tags)
	}
	list := d.Paths["/v1/shelves/{shelf}/books"]["get"]
	var names []string
	for _, p := range list.Parameters {
		names = append(names, p.In+" "+p.Name)
	}
	if got := strings.Join(names, ", "); got != "path shelf, query pageSize, query authors, query filter.genre, query filter.others,  ,  " {
		t.Errorf("the parameters are %s", got)
	}
	patch := d.Paths["/v1/shelves/{shelf}/books/{book}"]["patch"]
	if patch.Parameters[0].Description != "Part of book.name, which is shelves/*/books/*. name is \"shelves/1/books/2\"." || patch.OperationID != "test.library.v1.Library.UpdateBook_1" {
		t.Errorf("a method with a path is %+v", patch)
	}
	if cover := d.Paths["/v1/shelves/{shelf}/books/{book}/cover"]; cover["get"].Responses["200"].Content["*/*"].Schema != nil || len(cover["put"].RequestBody.Content) != 1 {
		t.Errorf("bodies that are bytes: %+v", cover["get"].Responses)
	}
	if !strings.Contains(d.Paths["/test.library.v1.Library.Archive"]["post"].Description, "ARCHIVE /v1/old/{name=shelves/**}") {
		t.Error("a path that OpenAPI has no place for is not told")
	}
	if any := d.Paths["/kinds/any/{string_value}"]; len(any) != 5 {
		t.Errorf("a rule for all methods of HTTP has %d operations", len(any))
	}
}

// A caller finds the methods that it may call; one without an identity finds nothing.
func TestOpenAPIIsForItsCaller(t *testing.T) {
	ann, bob := auth.NewToken(), auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest(ann)}, auth.Grant{Subject: "bob", SHA256: auth.Digest(bob)})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := auth.NewPolicy(auth.Rules{Allow: []auth.Rule{
		{Subjects: []string{"ann"}, Methods: []string{"Mail.Send", "test.library.v1.Library.GetBook"}}, {Subjects: []string{"bob"}, Methods: []string{"Things.Number"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s, address := start(t, sample.Add, anser.Authenticate(tokens), anser.Authorize(policy))
	for version, c := range versions(t) {
		for _, headers := range [][]string{nil, {"Authorization", "Bearer wrong"}} {
			resp, text := ask(t, c, "GET", address, "/openapi.json", "", headers...)
			if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != "Bearer" || strings.Contains(text, "Mail") {
				t.Errorf("%s: without an identity: %d %s", version, resp.StatusCode, text)
			}
		}
		if resp, text := ask(t, c, "GET", address, "/openapi", ""); resp.StatusCode != 200 || strings.Contains(text, "Mail") {
			t.Errorf("%s: the page: %d", version, resp.StatusCode)
		}
	}
	seen := readOpenAPI(t, address, "Authorization", "Bearer "+ann)
	if len(seen.Paths) != 5 || seen.Paths["/Mail.Send"] == nil || strings.Contains(string(seen.text), "Thing") || strings.Contains(string(seen.text), "ListBooks") {
		t.Errorf("ann sees %s", seen.text)
	}
	if !strings.Contains(string(seen.text), `"security":[{"bearer":[]}]`) {
		t.Errorf("the document does not say how callers authenticate themselves")
	}
	anser.Handle(s, "Mail.Late", func(context.Context, *sample.Letter) (*sample.Receipt, error) { return new(sample.Receipt), nil })
	if seen = readOpenAPI(t, address, "Authorization", "Bearer "+bob); len(seen.Paths) != 1 || seen.Paths["/Things.Number"] == nil {
		t.Errorf("bob sees %s", seen.text)
	}
}

// A document that a client has is not sent again, until methods are added.
func TestOpenAPIIsCached(t *testing.T) {
	s, address := start(t, sample.Add)
	for _, c := range versions(t) {
		resp, _ := ask(t, c, "GET", address, "/openapi.json", "")
		tag := resp.Header.Get("ETag")
		if resp, text := ask(t, c, "GET", address, "/openapi.json", "", "If-None-Match", `"x", `+tag); resp.StatusCode != 304 || text != "" {
			t.Errorf("the document is sent again with %d", resp.StatusCode)
		}
		if resp, text := ask(t, c, "HEAD", address, "/openapi.json", ""); resp.StatusCode != 200 || text != "" {
			t.Errorf("HEAD is answered with %d", resp.StatusCode)
		}
		if resp, _ := ask(t, c, "POST", address, "/openapi.json", "{}"); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST is answered with %d", resp.StatusCode)
		}
		name := fmt.Sprintf("Late.M%d", len(tag)+resp.ProtoMajor)
		anser.Handle(s, name, func(_ context.Context, in *sample.Receipt) (*sample.Receipt, error) { return in, nil })
		if resp, text := ask(t, c, "GET", address, "/openapi.json", "", "If-None-Match", tag); resp.StatusCode != 200 || !strings.Contains(text, name) {
			t.Errorf("a method that was added is not described: %d", resp.StatusCode)
		}
	}
}

// What a server has switched off is not there.
func TestOpenAPIIsOff(t *testing.T) {
	for name, opts := range map[string][]anser.ServerOption{
		"NoDescribe": {anser.NoDescribe()},
		"NoOpenAPI":  {anser.Protocols(protocols.HTTP(protocols.NoOpenAPI()))},
	} {
		s := anser.NewServer(append(opts, anser.NoSignals(), silent)...)
		if name == "NoDescribe" {
			s = anser.NewServer(append(opts, protocols.All(), anser.NoSignals(), silent)...)
		}
		sample.Add(s)
		l, err := s.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		for _, c := range versions(t) {
			for _, path := range []string{"/openapi.json", "/openapi"} {
				if resp, _ := ask(t, c, "GET", l.Addr().String(), path, ""); resp.StatusCode != 404 {
					t.Errorf("%s: %s is answered with %d", name, path, resp.StatusCode)
				}
			}
		}
		s.Close()
		<-served
	}
}

// The option says what the document says of the server, and mistakes in it are errors of Serve.
func TestOpenAPIInfo(t *testing.T) {
	serveInfo := func(info protocols.Info) (*anser.Server, string, chan error) {
		s := anser.NewServer(protocols.All(protocols.OpenAPI(info)), anser.NoSignals(), silent)
		sample.Add(s)
		l, err := s.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		return s, l.Addr().String(), served
	}
	s, address, served := serveInfo(protocols.Info{
		Title: "Shop", Version: "1.2", Contact: protocols.Contact{Email: "shop@example.com"}, License: protocols.License{Name: "Own"}, Servers: []string{"https://shop.example/api"},
	})
	d := readOpenAPI(t, address)
	if got := fmt.Sprint(d.values["info"], d.values["servers"]); got != "map[contact:map[email:shop@example.com] license:map[name:Own] title:Shop version:1.2] [map[url:https://shop.example/api]]" {
		t.Errorf("the document says %s", got)
	}
	s.Close()
	<-served
	_, _, served = serveInfo(protocols.Info{TermsOfService: "none", License: protocols.License{URL: "https://x.example"}, Servers: []string{""}})
	err := <-served
	for _, part := range []string{`the terms of service are "none"`, "the license has no name", `the server "" is no URL`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("Serve: %v, want %q", err, part)
		}
	}
}

// Pages of other sites read no document; a link to the page works.
func TestOpenAPIAndBrowsers(t *testing.T) {
	address := serve(t, sample.Add)
	c := new(http.Transport)
	defer c.CloseIdleConnections()
	for name, row := range map[string]struct {
		path    string
		headers []string
		status  int
	}{
		"other page":         {"/openapi.json", []string{"Origin", "https://evil.example"}, 403},
		"script":             {"/openapi.json", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "script", "Sec-Fetch-Mode", "no-cors"}, 403},
		"own page":           {"/openapi.json", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Mode", "cors"}, 200},
		"link":               {"/openapi", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document", "Sec-Fetch-Mode", "navigate"}, 200},
		"link to a document": {"/openapi.json", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document", "Sec-Fetch-Mode", "navigate"}, 403},
		"link to a method":   {"/v1/books/x", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document", "Sec-Fetch-Mode", "navigate"}, 403},
		"frame":              {"/openapi", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "iframe", "Sec-Fetch-Mode", "navigate"}, 403},
	} {
		resp, _ := ask(t, c, "GET", address, row.path, "", row.headers...)
		if resp.StatusCode != row.status {
			t.Errorf("%s: the status is %d, want %d", name, resp.StatusCode, row.status)
		}
		if row.path == "/openapi" && row.status == 200 {
			policy := resp.Header.Get("Content-Security-Policy")
			for _, part := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "form-action 'none'"} {
				if !strings.Contains(policy, part) {
					t.Errorf("the policy is %q", policy)
				}
			}
		}
	}
}
