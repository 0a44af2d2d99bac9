package mcp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/mcp"
	"github.com/anser-rpc/anser/protocols"
)

type (
	args  struct{ A, B int }
	reply struct{ C int }
	words struct {
		Words []string          `json:"words"`
		Tags  map[string]string `json:"tags,omitempty"`
	}
)

// sums has a method with several arguments.
type sums struct{}

func (sums) Add(_ context.Context, a, b int) (int, error) { return a + b, nil }

// serve starts a server with tools at /mcp.
func serve(t *testing.T, o mcp.Options, opts ...anser.ServerOption) (*mcp.Server, *anser.Server, string) {
	t.Helper()
	tools := mcp.New(o)
	mux := http.NewServeMux()
	mux.Handle("/mcp", tools)
	s := anser.NewServer(append(opts, protocols.All(protocols.Handler(mux)), anser.NoSignals(), anser.Logger(slog.New(slog.DiscardHandler)))...)
	anser.Handle(s, "Arith.Mul", func(_ context.Context, in *args) (*reply, error) { return &reply{in.A * in.B}, nil }, anser.Idempotent())
	anser.Handle(s, "Arith.Fail", func(context.Context, *args) (*reply, error) {
		return nil, anser.Errorf(anser.NotFound, "there is no such thing")
	})
	anser.Handle(s, "Words.Sort", func(_ context.Context, in *words) (*words, error) {
		slices.Sort(in.Words)
		return in, nil
	})
	if err := s.RegisterName("Sums", sums{}); err != nil {
		t.Fatal(err)
	}
	anser.HandleOneway(s, "Words.Note", func(context.Context, *words) error { return nil })
	if err := s.HandleDynamic([]anser.DynamicMethod{{
		Name: "Words.Count", Request: reflect.TypeFor[args](), Reply: reflect.TypeFor[reply](), ServerStream: true,
		Stream: func(_ context.Context, st *anser.DynamicStream) error {
			in := new(args)
			if err := st.Recv(in); err != nil {
				return err
			}
			for i := range in.A {
				if err := st.Send(&reply{i}); err != nil {
					return err
				}
			}
			if in.B > 0 {
				return anser.Errorf(anser.Aborted, "the count has stopped")
			}
			return nil
		},
	}}); err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		s.Serve(l)
		close(done)
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return tools, s, "http://" + l.Addr().String() + "/mcp"
}

// bearer sends a token with each request.
type bearer struct {
	token string
	next  *http.Transport
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// connect returns the official client over HTTP.
func connect(t *testing.T, url, token string, progress func(*sdk.ProgressNotificationParams)) *sdk.ClientSession {
	t.Helper()
	transport := &bearer{token, &http.Transport{}}
	t.Cleanup(transport.next.CloseIdleConnections)
	session, err := client(progress).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: transport}, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func client(progress func(*sdk.ProgressNotificationParams)) *sdk.Client {
	return sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, q *sdk.ProgressNotificationClientRequest) {
			if progress != nil {
				progress(q.Params)
			}
		},
	})
}

func names(t *testing.T, s *sdk.ClientSession) (list []string) {
	t.Helper()
	out, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range out.Tools {
		list = append(list, tool.Name)
	}
	return list
}

// call calls a tool, and returns its value in JSON, or the text of its error.
func call(t *testing.T, s *sdk.ClientSession, name, arguments string) (value, fault string) {
	t.Helper()
	out, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		return "", err.Error()
	}
	var all strings.Builder
	for _, c := range out.Content {
		all.WriteString(c.(*sdk.TextContent).Text)
	}
	if out.IsError {
		return "", all.String()
	}
	if out.StructuredContent == nil {
		return all.String(), ""
	}
	text, err := json.Marshal(out.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), ""
}

// Without a pattern no method is a tool.
func TestDeniedByDefault(t *testing.T) {
	tools, _, url := serve(t, mcp.Options{})
	s := connect(t, url, "", nil)
	if got := names(t, s); len(got) > 0 {
		t.Errorf("the tools are %q", got)
	}
	if _, fault := call(t, s, "Arith_Mul", `{"A":7,"B":8}`); !strings.Contains(fault, "unknown tool") {
		t.Errorf("the call ended with %q", fault)
	}
	if c := tools.Stats(); c.Unknown != 1 || c.Calls != 0 {
		t.Errorf("the counts are %+v", c)
	}
}

func TestCallOverHTTP(t *testing.T) {
	tools, server, url := serve(t, mcp.Options{Allow: []string{"*", "!Arith.F*"}})
	s := connect(t, url, "", nil)
	if got := names(t, s); !slices.Equal(got, []string{"Arith_Mul", "Sums_Add", "Words_Count", "Words_Note", "Words_Sort"}) {
		t.Fatalf("the tools are %q", got)
	}
	if got, fault := call(t, s, "Arith_Mul", `{"A":7,"B":8}`); got != `{"C":56}` {
		t.Errorf("%s, %s", got, fault)
	}
	if got, fault := call(t, s, "Sums_Add", `{"arg1":7,"arg2":8}`); got != `{"result1":15}` {
		t.Errorf("the results of a function: %s, %s", got, fault)
	}
	if got, fault := call(t, s, "Words_Sort", `{"words":["b","a"]}`); got != `{"words":["a","b"]}` {
		t.Errorf("%s, %s", got, fault)
	}
	if got, fault := call(t, s, "Words_Sort", `{}`); got != `{"words":null}` {
		t.Errorf("%s, %s", got, fault)
	}
	if got, fault := call(t, s, "Words_Note", `{"words":["b"]}`); fault != "" || !strings.Contains(got, "was sent") {
		t.Errorf("%s, %s", got, fault)
	}
	if c := tools.Stats(); c.Calls != 5 || c.Failed != 0 {
		t.Errorf("the counts are %+v", c)
	}
	if n := handled(server); n != 5 {
		t.Errorf("the server counts %d calls", n)
	}
}

// What does not fit the schema is an error for the agent, and nothing of it reaches the method.
func TestArgumentsThatDoNotFit(t *testing.T) {
	tools, server, url := serve(t, mcp.Options{Allow: []string{"*"}})
	s := connect(t, url, "", nil)
	for name, arguments := range map[string]string{
		"a string for a number": `{"A":"7","B":8}`,
		"an unknown key":        `{"A":7,"B":8,"C":9}`,
		"another case":          `{"a":7}`,
		"a fraction":            `{"A":1.5}`,
		"an array":              `[7,8]`,
		"a deep value":          `{"A":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
	} {
		if got, fault := call(t, s, "Arith_Mul", arguments); fault == "" {
			t.Errorf("%s: the reply is %s", name, got)
		}
	}
	if n := handled(server); n != 0 {
		t.Errorf("the server counts %d calls", n)
	}
	if c := tools.Stats(); c.Calls != 0 || c.Invalid < 5 {
		t.Errorf("the counts are %+v", c)
	}
}

func TestErrorOfMethod(t *testing.T) {
	tools, _, url := serve(t, mcp.Options{Allow: []string{"Arith.*"}})
	s := connect(t, url, "", nil)
	if got, fault := call(t, s, "Arith_Fail", `{}`); !strings.Contains(fault, "there is no such thing") || !strings.Contains(fault, "not found") {
		t.Errorf("%s, %s", got, fault)
	}
	if c := tools.Stats(); c.Failed != 1 {
		t.Errorf("the counts are %+v", c)
	}
}

// A caller sees and calls the tools that the policy allows.
func TestIdentityOfCaller(t *testing.T) {
	token, other := auth.NewToken(), auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest(token)}, auth.Grant{Subject: "bob", SHA256: auth.Digest(other)})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := auth.NewPolicy(auth.Rules{Allow: []auth.Rule{{Subjects: []string{"ann"}, Methods: []string{"Arith.Mul"}}}})
	if err != nil {
		t.Fatal(err)
	}
	_, _, url := serve(t, mcp.Options{Allow: []string{"*"}}, anser.Authenticate(tokens), anser.Authorize(policy))
	ann, bob := connect(t, url, token, nil), connect(t, url, other, nil)
	if got := names(t, ann); !slices.Equal(got, []string{"Arith_Mul"}) {
		t.Errorf("ann's tools are %q", got)
	}
	if got := names(t, bob); len(got) > 0 {
		t.Errorf("bob's tools are %q", got)
	}
	if got, fault := call(t, ann, "Arith_Mul", `{"A":7,"B":8}`); got != `{"C":56}` {
		t.Errorf("%s, %s", got, fault)
	}
	if got, fault := call(t, bob, "Arith_Mul", `{"A":7,"B":8}`); !strings.Contains(fault, "unknown tool") {
		t.Errorf("%s, %s", got, fault)
	}
	for _, header := range []string{"", "Bearer " + auth.NewToken()} {
		r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("with %q the status is %d", header, resp.StatusCode)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// handled returns the number of calls that handlers were started for.
func handled(s *anser.Server) (n int64) {
	for _, m := range s.Stats().Methods {
		n += m.Calls
	}
	return n
}
