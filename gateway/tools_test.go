package gateway_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

// The tools are those of the configuration in force. They stay the same when another part changes.
func TestTools(t *testing.T) {
	made := 0
	g, err := gateway.New(parse(t, "services: [a]"), gateway.Options{
		Registry: registry.NewMemory(), Logger: slog.New(slog.DiscardHandler),
		Tools: func(m gateway.MCP) http.Handler {
			made++
			n := made
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, "%d %q %t %t", n, m.Allow, m.Compact, m.Resources)
			})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	addr := serveGateway(t, g)
	for _, step := range []struct{ config, path, want string }{
		{"services: [a]", "/mcp", "404 "},
		{"services: [a]\nmcp: {allow: [Arith.*], compact: true}", "/mcp", `200 1 ["Arith.*" "!Gateway.Proxy"] true false`},
		{"timeout: 1s\nservices: [a]\nmcp: {allow: [Arith.*], compact: true}", "/mcp", `200 1 `},
		{"services: [a]\nmcp: {allow: [Arith.*], resources: true}", "/mcp", `200 2 ["Arith.*" "!Gateway.Proxy"] false true`},
		{"services: [a]\nmcp: {allow: [Arith.*], resources: true}", "/mcp/", "404 "},
		{"services: [a]\nmcp: {allow: [Arith.*]}\nroutes: [{path: /mcp, to: [{url: \"http://127.0.0.1:1\"}]}]", "/mcp", "503 "},
		{"services: [a]", "/mcp", "404 "},
	} {
		if err := g.Apply(parse(t, step.config)); err != nil {
			t.Fatalf("%s: %v", step.config, err)
		}
		if status, body := post(t, "http://"+addr+step.path, "{}"); !strings.HasPrefix(fmt.Sprint(status, " ", body), step.want) {
			t.Errorf("%s: %d %s, want %s", step.config, status, body, step.want)
		}
	}
}

// A program that offers no tools refuses a configuration with some.
func TestToolsThatAreNot(t *testing.T) {
	_, err := gateway.New(parse(t, "mcp: {allow: [Arith.*]}"), gateway.Options{Registry: registry.NewMemory()})
	if err == nil || !strings.Contains(err.Error(), ":1: this program offers no tools (gateway.Options.Tools): remove mcp") {
		t.Error(err)
	}
}

// A page on this machine reaches the gateway under its own hosts, which are those of its routes and
// of the configuration.
func TestHosts(t *testing.T) {
	g, addr := start(t, registry.NewMemory(), parse(t, `
hosts: [gate.example, "*.local.example"]
routes: [{host: shop.example, path: /none, to: [{service: none}]}]`))
	get := func(host string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/openapi", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for host, want := range map[string]int{
		addr: 200, "localhost": 200, "gate.example": 200, "Gate.Example:8080": 200, "a.local.example": 200, "shop.example": 200,
		"local.example": 403, "evil.example": 403, "gate.example.evil": 403,
	} {
		if got := get(host); got != want {
			t.Errorf("%s: %d, want %d", host, got, want)
		}
	}
	if err := g.Apply(parse(t, "hosts: [evil.example]")); err != nil {
		t.Fatal(err)
	}
	if get("evil.example") != 200 || get("gate.example") != 403 {
		t.Error("the hosts are not those of the configuration in force")
	}
}
