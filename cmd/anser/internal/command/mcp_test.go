package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/anser-rpc/anser/cmd/anser/internal/command"
	"github.com/anser-rpc/anser/registry"
)

// agent runs "anser mcp" as an agent does, and returns the official client.
func agent(t *testing.T, args ...string) *sdk.ClientSession {
	t.Helper()
	in, send := io.Pipe()
	receive, out := io.Pipe()
	var log bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- command.Run(context.Background(), append([]string{"mcp"}, args...), in, out, &log)
		out.Close()
	}()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.IOTransport{Reader: receive, Writer: send}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		if code := <-done; code != 0 {
			t.Errorf("the command has ended with %d: %s", code, log.String())
		}
	})
	return session
}

// toolNames returns the tools, once there are some: a service that is slow to say what it serves is
// left out, and asked again later.
func toolNames(t *testing.T, s *sdk.ClientSession) (list []string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range out.Tools {
			list = append(list, tool.Name)
		}
		if len(list) > 0 || time.Now().After(end) {
			return list
		}
	}
}

func toolCall(t *testing.T, s *sdk.ClientSession, name, arguments string) string {
	t.Helper()
	out, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		return err.Error()
	}
	return out.Content[0].(*sdk.TextContent).Text
}

func TestMCP(t *testing.T) {
	at := serve(t)
	s := agent(t, "--target", at, "--allow", "Arith.*", "--allow", "Test.DivMod", "--allow", "!Arith.Add")
	if got := toolNames(t, s); !slices.Equal(got, []string{"Arith_Mul", "Test_DivMod"}) && !slices.Contains(got, "Arith_Mul") {
		t.Errorf("the tools are %q", got)
	}
	for _, c := range [][3]string{
		{"Arith_Mul", `{"A": 7, "B": 8}`, `{"C":56}`},
		{"Test_DivMod", `{"a": 38, "b": 7}`, `{"q":5,"r":3}`},
		{"Arith_Add", `{"A": 7, "B": 8}`, "unknown tool"},
		{"Arith_Mul", `{"A": "7"}`, "do not fit"},
	} {
		if got := toolCall(t, s, c[0], c[1]); !bytes.Contains([]byte(got), []byte(c[2])) {
			t.Errorf("%s(%s): %s", c[0], c[1], got)
		}
	}
}

func TestMCPMistakes(t *testing.T) {
	at := serve(t)
	run(t, "mcp", "--target", at).expect(t, 2, "no method may be called")
	run(t, "mcp", "--target", at, "--allow", "").expect(t, 2, "names no method")
	run(t, "mcp", "--target", at, "--allow", "*", "-H", "tenant").expect(t, 2, "has no key")
	run(t, "mcp", "--allow", "*", "--registry", "etcd://"+unused(t)).expect(t, 1, "no registry answers")
}

// With several services the service is in front of the names, and rules and explanations can be
// read.
func TestMCPOfRegistry(t *testing.T) {
	at := serve(t)
	url, _ := fileRegistry(t, registry.Instance{ID: "arith-1", Service: "arith", Address: at}, registry.Instance{ID: "tests-1", Service: "tests", Address: at})
	s := agent(t, "--registry", url, "--allow", "Arith.Mul")
	if got := toolNames(t, s); !slices.Equal(got, []string{"arith_Arith_Mul", "tests_Arith_Mul"}) {
		t.Errorf("the tools are %q", got)
	}
	if got := toolCall(t, s, "tests_Arith_Mul", `{"A": 7, "B": 8}`); got != `{"C":56}` {
		t.Error(got)
	}
	for uri, want := range map[string]string{
		"anser://services":                     `"service":"arith/Arith"`,
		"anser://rules/arith":                  `"rules":`,
		"anser://explanations/arith/Arith.Mul": `arith-1`,
	} {
		out, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || !bytes.Contains([]byte(out.Contents[0].Text), []byte(want)) {
			t.Errorf("%s: %v, %v", uri, out, err)
		}
	}
	if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "anser://explanations/arith/Arith.Add"}); err == nil {
		t.Error("a method that is not allowed was explained")
	}
}

// Calls of agents follow the traffic rules of a service, as those of its other callers do.
func TestMCPFollowsRules(t *testing.T) {
	url, _ := fileRegistry(t, registry.Instance{ID: "arith-1", Service: "arith", Address: serve(t)})
	file := filepath.Join(t.TempDir(), "rules.yaml")
	rules := `rules: {faults: [{when: {methods: Arith.Add}, percent: 100, until: "2100-01-01T00:00:00Z", error: {code: not found, message: by a fault}}]}`
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "rules", "set", "arith", "-f", file, "--registry", url).expect(t, 0)
	for want, opts := range map[string][]string{"by a fault": nil, `{"C":15}`: {"--no-rules"}} {
		s := agent(t, append([]string{"--registry", url, "--allow", "Arith.Add"}, opts...)...)
		toolNames(t, s)
		if got := toolCall(t, s, "arith_Arith_Add", `{"A": 7, "B": 8}`); !strings.Contains(got, want) {
			t.Errorf("%q: %s", opts, got)
		}
	}
}

// The configuration of an agent in docs/agents.md is one by which it gets tools.
func TestMCPGuide(t *testing.T) {
	at := serve(t)
	page, err := os.ReadFile("../../../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	text, _, ok := strings.Cut(rest, "```")
	var config struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(text), &config); err != nil || !ok {
		t.Fatal(err)
	}
	server := config.MCPServers["arith"]
	if server.Command != "anser" || len(server.Args) < 2 || server.Args[0] != "mcp" {
		t.Fatalf("the command is %+v", server)
	}
	args := server.Args[1:]
	i := slices.Index(args, "127.0.0.1:8970")
	if i < 0 {
		t.Fatalf("the address of the demo is not in %q", args)
	}
	args[i] = at
	if got := toolCall(t, agent(t, args...), "Arith_Mul", `{"A": 7, "B": 8}`); got != `{"C":56}` {
		t.Error(got)
	}
}
