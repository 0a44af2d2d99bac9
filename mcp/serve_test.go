package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/mcp"
)

// source is a source of methods of a test.
type source struct {
	methods []*mcp.Method
	call    func(m *mcp.Method, message json.RawMessage, each func(json.RawMessage) error) (json.RawMessage, error)
}

func (s *source) Methods(context.Context) ([]*mcp.Method, error) { return s.methods, nil }

func (s *source) Call(_ context.Context, m *mcp.Method, message json.RawMessage, each func(json.RawMessage) error) (json.RawMessage, error) {
	return s.call(m, message, each)
}

// describe returns methods with these names, whose messages have the number A.
func describe(names ...string) (list []*mcp.Method) {
	for _, full := range names {
		service, name, ok := strings.Cut(full, "/")
		if !ok {
			service, name = "", full
		}
		i := strings.LastIndexByte(name, '.')
		list = append(list, &mcp.Method{Service: service, Name: name, Contract: &contract.Schema{
			Kind:     contract.Go,
			Services: []contract.Service{{Name: name[:i], Methods: []contract.Method{{Name: name[i+1:], Doc: "Says " + name + ".", Request: "m.A", Reply: "m.A"}}}},
			Messages: []contract.Message{{Name: "m.A", Form: contract.ByName, Fields: []contract.Field{{Name: "A", Type: contract.Type{Name: "int"}}}}},
		}})
	}
	return list
}

// talk connects the official client to a server of tools over lines of JSON, as over the standard
// input and output.
func talk(t *testing.T, server *mcp.Server, from mcp.Source) *sdk.ClientSession {
	t.Helper()
	in, send := io.Pipe()
	receive, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- server.Serve(context.Background(), from, in, out)
		out.Close()
	}()
	session, err := client(nil).Connect(t.Context(), &sdk.IOTransport{Reader: receive, Writer: send}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return session
}

func TestServe(t *testing.T) {
	from := &source{methods: describe("Echo.Say"), call: func(_ *mcp.Method, message json.RawMessage, _ func(json.RawMessage) error) (json.RawMessage, error) {
		return message, nil
	}}
	s := talk(t, mcp.New(mcp.Options{Allow: []string{"Echo.*"}}), from)
	if got, fault := call(t, s, "Echo_Say", `{"A":7}`); got != `{"A":7}` {
		t.Errorf("%s, %s", got, fault)
	}
	from.methods = describe("Echo.Say", "Echo.Shout") // methods come while the client is there
	if got := names(t, s); len(got) != 2 {
		t.Errorf("the tools are %q", got)
	}
	if got, fault := call(t, s, "Echo_Shout", `{"A":8}`); got != `{"A":8}` {
		t.Errorf("%s, %s", got, fault)
	}
	from.methods = nil
	if got, fault := call(t, s, "Echo_Shout", `{"A":8}`); !strings.Contains(fault, "unknown tool") {
		t.Errorf("%s, %s", got, fault)
	}
}

// Names have 40 characters at most, and two methods never share one.
func TestNames(t *testing.T) {
	long := "com.example.warehouse.inventory.v1.InventoryService."
	methods := describe("Echo.Say", "shop/Echo.Say", "a_b.C", "a.b_C", "a.b.C", long+"ListReservations", long+"ListReservation", "x."+strings.Repeat("y", 100))
	s := talk(t, mcp.New(mcp.Options{Allow: []string{"*"}}), &source{methods: methods})
	seen := make(map[string]bool)
	for _, name := range names(t, s) {
		if len(name) > 40 || seen[name] {
			t.Errorf("the name %q is too long, or there twice", name)
		}
		seen[name] = true
	}
	for _, want := range []string{"Echo_Say", "shop_Echo_Say", "a_b_C", "ListReservations_a171c9e3"} {
		if len(seen) != 8 || !seen[want] {
			t.Errorf("no tool is named %q: they are %v", want, seen)
		}
	}
}

func TestCompact(t *testing.T) {
	from := &source{methods: describe("Echo.Say", "Echo.Shout", "Other.Thing", "Hidden.Thing"), call: func(m *mcp.Method, message json.RawMessage, _ func(json.RawMessage) error) (json.RawMessage, error) {
		return message, nil
	}}
	server := mcp.New(mcp.Options{Allow: []string{"*", "!Hidden.*"}, Compact: true})
	s := talk(t, server, from)
	if got := strings.Join(names(t, s), " "); got != "search_methods describe_method call_method" {
		t.Errorf("the tools are %s", got)
	}
	for _, c := range [][3]string{
		{"search_methods", `{"query":"echo sho"}`, `{"methods":[{"description":"Says Echo.Shout.","method":"Echo.Shout"}],"more":0}`},
		{"search_methods", `{"limit":1}`, `{"methods":[{"description":"Says Echo.Say.","method":"Echo.Say"}],"more":2}`},
		{"call_method", `{"method":"Echo.Say","arguments":{"A":7}}`, `{"A":7}`},
	} {
		if got, fault := call(t, s, c[0], c[1]); got != c[2] {
			t.Errorf("%s(%s): %s, %s", c[0], c[1], got, fault)
		}
	}
	if got, fault := call(t, s, "describe_method", `{"method":"Echo.Say"}`); !strings.Contains(got, `"inputSchema":{`) {
		t.Errorf("%s, %s", got, fault)
	}
	for _, c := range [][3]string{
		{"call_method", `{"method":"Hidden.Thing"}`, "no method"},
		{"describe_method", `{"method":"Hidden.Thing"}`, "no method"},
		{"call_method", `{"method":"Echo.Say","arguments":{"A":"x"}}`, "do not fit"},
		{"call_method", `{"method":7}`, "do not fit"},
		{"call_method", `{}`, "missing"},
		{"search_methods", `{"limit":0}`, "range"},
		{"search_methods", `{"words":"x"}`, "no argument"},
		{"Echo_Say", `{"A":7}`, "unknown tool"},
	} {
		if got, fault := call(t, s, c[0], c[1]); !strings.Contains(fault, c[2]) {
			t.Errorf("%s(%s): %s, %s", c[0], c[1], got, fault)
		}
	}
	if c := server.Stats(); c.Calls != 1 || c.Unknown != 3 || c.Invalid != 5 {
		t.Errorf("the counts are %+v", c)
	}
}

// Results of streams are bounded, and so are replies.
func TestBoundsOfResults(t *testing.T) {
	methods := describe("Echo.Say", "Echo.Many")
	methods[1].Contract.Services[0].Methods[0].ServerStream = true
	sent := 0
	from := &source{methods: methods, call: func(m *mcp.Method, message json.RawMessage, each func(json.RawMessage) error) (json.RawMessage, error) {
		if each == nil {
			return json.RawMessage(`{"A":` + strings.Repeat("1", 2000) + `}`), nil
		}
		for ; sent < 100; sent++ {
			if err := each(json.RawMessage(fmt.Sprintf(`{"A":%d}`, sent))); err != nil {
				return nil, err
			}
		}
		return nil, errors.New("it was not ended")
	}}
	s := talk(t, mcp.New(mcp.Options{Allow: []string{"*"}, MaxResult: 1000, MaxMessages: 3}), from)
	if got, fault := call(t, s, "Echo_Say", `{}`); !strings.Contains(fault, "ask for less") {
		t.Errorf("%s, %s", got, fault)
	}
	if got, fault := call(t, s, "Echo_Many", `{}`); got != `{"complete":false,"messages":[{"A":0},{"A":1},{"A":2}]}` || sent != 3 {
		t.Errorf("%s, %s, after %d messages", got, fault, sent)
	}
}

// The messages of a stream are progress, and then the result.
func TestProgress(t *testing.T) {
	_, _, url := serve(t, mcp.Options{Allow: []string{"Words.*"}})
	told := make(chan string, 10)
	s := connect(t, url, "", func(p *sdk.ProgressNotificationParams) { told <- fmt.Sprint(p.Progress, " ", p.Message) })
	q := &sdk.CallToolParams{Name: "Words_Count", Arguments: json.RawMessage(`{"A":3}`)}
	q.SetProgressToken("count")
	out, err := s.CallTool(t.Context(), q)
	if err != nil || out.IsError {
		t.Fatal(out, err)
	}
	if text, _ := json.Marshal(out.StructuredContent); string(text) != `{"complete":true,"messages":[{"C":0},{"C":1},{"C":2}]}` {
		t.Errorf("the result is %s", text)
	}
	for _, want := range []string{`1 {"C":0}`, `2 {"C":1}`, `3 {"C":2}`} {
		if got := <-told; got != want {
			t.Errorf("the progress is %s, want %s", got, want)
		}
	}
	if got, fault := call(t, s, "Words_Count", `{"A":1,"B":1}`); !strings.Contains(fault, "the count has stopped") || !strings.Contains(fault, `[{"C":0}]`) {
		t.Errorf("%s, %s", got, fault)
	}
}

func TestResources(t *testing.T) {
	_, _, url := serve(t, mcp.Options{Allow: []string{"Arith.Mul"}, Resources: true})
	s := connect(t, url, "", nil)
	list, err := s.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != 2 {
		t.Fatal(list, err)
	}
	for uri, want := range map[string]string{
		"anser://services":   `[{"service":"Arith","methods":["Mul"]}]`,
		"anser://statistics": `{"lists":0,"calls":0,"failed":0,"unknown":0,"invalid":0}`,
	} {
		out, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || out.Contents[0].Text != want {
			t.Errorf("%s: %+v, %v", uri, out, err)
		}
	}
	if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "anser://secrets"}); err == nil {
		t.Error("a resource that does not exist was read")
	}
	_, _, url = serve(t, mcp.Options{Allow: []string{"Arith.Mul"}})
	if list, err := connect(t, url, "", nil).ListResources(t.Context(), nil); err == nil && len(list.Resources) > 0 {
		t.Errorf("without the option there are %v", list.Resources)
	}
}

// The program in docs/agents.md is that of the example.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile("../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```go\n")
	block, _, ok := strings.Cut(rest, "```")
	if plain := strings.ReplaceAll(string(example), "\n\t", "\n"); !ok || !strings.Contains(plain, block) {
		t.Errorf("example_test.go does not have\n%s", block)
	}
}
