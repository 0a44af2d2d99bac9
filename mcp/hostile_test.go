package mcp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/mcp"
)

// post sends a request, and returns the status and the answer.
func post(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// Hostile requests end with an error, and no call is made.
func TestHostileRequests(t *testing.T) {
	tools, server, url := serve(t, mcp.Options{Allow: []string{"*"}, MaxArguments: 10_000})
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Arith_Mul","arguments":{"A":7,"B":8}}}`
	if status, text := post(t, http.MethodPost, url, call); status != http.StatusOK || !strings.Contains(text, `"C":56`) {
		t.Fatalf("%d %s", status, text)
	}
	calls := handled(server)
	for name, q := range map[string]struct {
		method, body string
		header       []string
		status       int // 0: 200 with an error in it
	}{
		"a page":               {http.MethodPost, call, []string{"Origin", "http://evil.example"}, http.StatusForbidden},
		"a name of a page":     {http.MethodPost, call, []string{"Origin", "http://evil.example", "Host", "evil.example"}, http.StatusForbidden},
		"a large body":         {http.MethodPost, strings.Replace(call, "7", "7"+strings.Repeat(" ", 20_000), 1), nil, http.StatusRequestEntityTooLarge},
		"GET":                  {http.MethodGet, "", nil, http.StatusMethodNotAllowed},
		"DELETE":               {http.MethodDelete, "", nil, http.StatusMethodNotAllowed},
		"a form":               {http.MethodPost, call, []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType},
		"no JSON":              {http.MethodPost, "{", nil, http.StatusBadRequest},
		"an unknown version":   {http.MethodPost, call, []string{"Mcp-Protocol-Version", "1999-01-01"}, http.StatusBadRequest},
		"another name in head": {http.MethodPost, call, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "Other"}, http.StatusBadRequest},
		"arguments as text":    {http.MethodPost, strings.Replace(call, `{"A":7,"B":8}`, `"{}"`, 1), nil, 0},
		"a cursor":             {http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`, nil, 0},
		"prompts":              {http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`, nil, 0},
		"resources":            {http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, nil, 0},
	} {
		status, text := post(t, q.method, url, q.body, q.header...)
		if q.status != 0 && status != q.status || q.status == 0 && !strings.Contains(text, `rror`) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if n := handled(server); n != calls {
		t.Errorf("%d of these requests have reached a method", n-calls)
	}
	if c := tools.Stats(); c.Calls != 1 {
		t.Errorf("the counts are %+v", c)
	}
}
