package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/cmd/anser/internal/command"
	"github.com/anser-rpc/anser/registry"
)

// printed is what a command has printed so far.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

type (
	factors struct{ A, B int }
	product struct{ C int }
)

// runGateway starts a service with Arith.Mul and Arith.Add, and the command with a configuration in
// front of it. It returns the address of the gateway, which ends with the test, and what the
// command prints.
func runGateway(t *testing.T, dir, config string, flags ...string) (base string, out *printed) {
	t.Helper()
	r, err := registry.NewFile(filepath.Join(dir, "registry.json"))
	if err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(anser.NoSignals(), anser.Announce(r, registry.Instance{Service: "arith"}), anser.Logger(slog.New(slog.DiscardHandler)))
	anser.Handle(s, "Arith.Mul", func(_ context.Context, in *factors) (*product, error) { return &product{in.A * in.B}, nil })
	anser.Handle(s, "Arith.Add", func(_ context.Context, in *factors) (*product, error) { return &product{in.A + in.B}, nil })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	file := filepath.Join(dir, "edge.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	out, ended := new(printed), make(chan int, 1)
	go func() {
		args := append([]string{"gateway", file, "--listen", "127.0.0.1:0", "--registry", "file://" + dir + "/registry.json"}, flags...)
		ended <- command.Run(ctx, args, strings.NewReader(""), out, out)
	}()
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d\n%s", code, out)
		}
		s.Close()
		<-served
		r.Close()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, line, _ := strings.Cut(out.String(), "curl ")
		if base, _, ok := strings.Cut(line, "/SERVICE/"); ok {
			resp, err := http.Post(base+"/arith/Arith.Mul", "application/json", strings.NewReader(`{"A": 7, "B": 8}`))
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			if resp.Body.Close(); resp.StatusCode == 200 && string(b) == `{"C":56}` || resp.StatusCode == http.StatusUnauthorized {
				return base, out
			}
		}
		if time.Now().After(deadline) {
			t.Fatal(out.String())
		}
	}
}

// The admin page of a gateway has its calls, from callers and to services, and its metrics.
func TestGatewayAdmin(t *testing.T) {
	_, out := runGateway(t, t.TempDir(), "{}\n", "--admin", "127.0.0.1:0")
	_, line, _ := strings.Cut(out.String(), "admin page at ")
	page, _, _ := strings.Cut(line, ",")
	for path, want := range map[string][]string{
		"methods": {"Methods that the process serves", "Arith.Mul"},
		"metrics": {`anser_server_calls_total{code="OK",method="arith/Arith.Mul"} 1`, `anser_client_calls_total{code="OK",method="Arith.Mul",target="`},
	} {
		resp, err := http.Get(page + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		for _, w := range want {
			if !strings.Contains(strings.ToLower(string(b)), strings.ToLower(w)) {
				t.Errorf("%s lacks %q:\n%s", path, w, b)
			}
		}
	}
}

// bearer sends a token with each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// toolsAt returns the official client of the tools at a gateway.
func toolsAt(t *testing.T, url, token string) (*sdk.ClientSession, error) {
	t.Helper()
	agent, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).
		Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{token}}, MaxRetries: -1}, nil)
	if err == nil {
		t.Cleanup(func() { agent.Close() })
	}
	return agent, err
}

// callTool calls a tool, and returns the text of its result or error.
func callTool(t *testing.T, agent *sdk.ClientSession, name string) string {
	t.Helper()
	answer, err := agent.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(`{"A": 7, "B": 8}`)})
	if err != nil {
		return err.Error()
	}
	return answer.Content[0].(*sdk.TextContent).Text
}

// The command serves what is in the registry, to agents too, and ends with its context.
func TestGateway(t *testing.T) {
	_, out := runGateway(t, t.TempDir(), "mcp: {allow: [Arith.*, \"!*.Add\"]}\n")
	_, line, _ := strings.Cut(out.String(), "tools for agents at ")
	url, _, _ := strings.Cut(line, "\n")
	agent, err := toolsAt(t, url, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tools, err := agent.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "arith_Arith_Mul" {
		t.Errorf("the tools are %+v, %v", tools, err)
	}
	if got := callTool(t, agent, "arith_Arith_Mul"); got != `{"C":56}` {
		t.Error(got)
	}
}

// Agents have the identities of other callers, and see what the policy allows them.
func TestToolsOfCallers(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tokens.json": fmt.Sprintf(`{"tokens": [{"subject": "ann", "sha256": %q}, {"subject": "bob", "sha256": %q}]}`, auth.Digest("of ann"), auth.Digest("of bob")),
		"policy.json": `{"allow": [{"subjects": ["ann"], "methods": ["Arith.Mul"]}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base, _ := runGateway(t, dir, fmt.Sprintf("auth: {tokens: %s/tokens.json, policy: %s/policy.json}\nmcp: {allow: [\"*\"], compact: true}\n", dir, dir))
	ann, err := toolsAt(t, base+"/mcp", "of ann")
	if err != nil {
		t.Fatal(err)
	}
	bob, err := toolsAt(t, base+"/mcp", "of bob")
	if err != nil {
		t.Fatal(err)
	}
	if got := callTool(t, ann, "search_methods"); !strings.Contains(got, "has no argument") {
		t.Error(got)
	}
	for agent, want := range map[*sdk.ClientSession]string{ann: `{"methods":[{"method":"arith/Arith.Mul"}],"more":0}`, bob: `{"methods":[],"more":0}`} {
		answer, err := agent.CallTool(t.Context(), &sdk.CallToolParams{Name: "search_methods", Arguments: json.RawMessage(`{}`)})
		if err != nil || answer.Content[0].(*sdk.TextContent).Text != want {
			t.Errorf("%+v, %v, want %s", answer, err, want)
		}
	}
	if _, err := toolsAt(t, base+"/mcp", ""); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("without a token: %v", err)
	}
}

// The calls of tools take the routes of other calls, also those with a path.
func TestRoutesOfTools(t *testing.T) {
	base, _ := runGateway(t, t.TempDir(), `
mcp: {allow: [Arith.*]}
routes: [{path: /arith, headers: {authorization: "Bearer beta"}, to: [{service: arith, version: "9"}]}]
`)
	for token, want := range map[string]string{"": `{"C":56}`, "beta": "version"} {
		agent, err := toolsAt(t, base+"/mcp", token)
		if err != nil {
			t.Fatal(err)
		}
		if got := callTool(t, agent, "arith_Arith_Mul"); !strings.Contains(got, want) {
			t.Errorf("with %q: %s, want %s", token, got, want)
		}
	}
}

func TestGatewayConfigurations(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	one := write("one.yaml", "timeout: 1s\nroutes:\n- {path: /a, to: [{service: a}]}\n")
	same := write("same.yaml", "# the same\nroutes: [{to: [{service: a}], path: /a}]\ntimeout: 1000ms\n")
	other := write("other.yaml", "timeout: 1s\nroutes:\n- {path: /a, to: [{service: b}]}\n")
	bad := write("bad.yaml", "timeout: 1s\nroute: []\n")
	registry := "file://" + filepath.Join(dir, "registry.json")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"gateway", "check", one}, 0, "is valid: 1 routes"},
		{[]string{"gateway", "check", bad}, 2, `bad.yaml:2: unknown key "route": did you mean "routes"?`},
		{[]string{"gateway", "check", filepath.Join(dir, "none")}, 2, "no such file"},
		{[]string{"gateway", "diff", one, same}, 0, "no difference"},
		{[]string{"gateway", "diff", one, other}, 1, "+         - service: b"},
		{[]string{"gateway", "diff", one, bad}, 2, "unknown key"},
		{[]string{"gateway", "put", "edge", bad, "--registry", registry}, 2, "unknown key"},
		{[]string{"gateway", "show", "edge", "--registry", registry}, 1, "no configuration \"edge\""},
		{[]string{"gateway", "put", "edge", one, "--registry", registry}, 0, "edge is one.yaml"},
		{[]string{"gateway", "put", "edge", other, "--registry", registry}, 0, "edge is other.yaml"},
		{[]string{"gateway", "show", "edge", "--registry", registry}, 0, "service: b"},
		{[]string{"gateway", one, "--document", "edge", "--registry", registry}, 2, "not both"},
		{[]string{"gateway", bad, "--registry", registry}, 2, "unknown key"},
		{[]string{"gateway", "--document", "none", "--registry", registry}, 2, "no configuration"},
		{[]string{"gateway", "--listen", "0.0.0.0:0", "--registry", registry}, 1, "accept the risk with --insecure-public"},
		{[]string{"gateway", "--insecure-public", "--document", "none", "--registry", registry}, 2, "no configuration"},
	} {
		got := run(t, c.args...)
		if got.code != c.code || !strings.Contains(got.out+got.err, c.want) {
			t.Errorf("%v: %d, want %d and %q\n%s%s", c.args, got.code, c.code, c.want, got.out, got.err)
		}
	}
}
