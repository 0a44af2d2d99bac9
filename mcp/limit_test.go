package mcp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/interceptor/ratelimit"
	"github.com/anser-rpc/anser/mcp"
)

// A limit of the calls of each caller applies to all that a caller can ask for, whether it calls a
// method or not. The call of a tool counts once.
func TestLimitOfCaller(t *testing.T) {
	const burst = 3
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	tool := func(name, arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`
	}
	for name, test := range map[string]struct {
		o    mcp.Options
		body string // "": the page
		good string // what the answer has while the limit is not reached
	}{
		"list":            {mcp.Options{}, list, "Arith_Mul"},
		"compact list":    {mcp.Options{Compact: true}, list, "search_methods"},
		"call":            {mcp.Options{}, tool("Arith_Mul", `{"A":6,"B":7}`), "42"},
		"unknown tool":    {mcp.Options{}, tool("Arith_None", `{}`), "unknown tool"},
		"search":          {mcp.Options{Compact: true}, tool("search_methods", `{}`), "Arith.Mul"},
		"describe":        {mcp.Options{Compact: true}, tool("describe_method", `{"method":"Arith.Mul"}`), "inputSchema"},
		"unknown method":  {mcp.Options{Compact: true}, tool("describe_method", `{"method":"None"}`), "no method"},
		"call by name":    {mcp.Options{Compact: true}, tool("call_method", `{"method":"Arith.Mul","arguments":{"A":6,"B":7}}`), "42"},
		"page":            {mcp.Options{}, "", "Arith.Mul"},
		"list of methods": {mcp.Options{Resources: true}, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"anser://services"}}`, "Arith"},
	} {
		t.Run(name, func(t *testing.T) {
			limiter, err := ratelimit.New(ratelimit.Caller(ratelimit.ByAddress, ratelimit.Rate{PerSecond: 1e-6, Burst: burst}))
			if err != nil {
				t.Fatal(err)
			}
			defer limiter.Close()
			test.o.Allow = []string{"Arith.*"}
			_, _, url := serve(t, test.o, anser.Observe(limiter.Observer()))
			for n := range burst + 1 {
				body := ask(t, url, test.body)
				if refused := !strings.Contains(body, test.good); refused != (n == burst) || refused && !strings.Contains(body, "limit") {
					t.Errorf("request %d: %.300s", n, body)
				}
			}
		})
	}
}

// ask sends one request, and returns the answer.
func ask(t *testing.T, url, body string) string {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if body == "" {
		r.Header.Set("Accept", "text/html")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
