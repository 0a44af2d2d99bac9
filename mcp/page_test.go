package mcp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/mcp"
)

// browse gets a page as a browser does.
func browse(t *testing.T, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// A browser gets a page with the tools.
func TestPage(t *testing.T) {
	_, _, url := serve(t, mcp.Options{Allow: []string{"Arith.Mul", "Words.*"}, Name: "<shop>"})
	resp, page := browse(t, url)
	if resp.StatusCode != http.StatusOK || !strings.Contains(resp.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	for _, want := range []string{"Arith_Mul", "Words_Sort", "may be repeated", "&lt;shop&gt;: tools for agents", "&#34;url&#34;: &#34;" + url + "&#34;", "&#34;additionalProperties&#34;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s:\n%s", want, page)
		}
	}
	for _, not := range []string{"Arith_Fail", "<shop>"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %s", not)
		}
	}
	if resp, _ := browse(t, url, "Accept", "text/event-stream"); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a client of the protocol gets %s", resp.Status)
	}
}

// The page of a caller has what the caller may call.
func TestPageOfCaller(t *testing.T) {
	token := auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest(token)})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := auth.NewPolicy(auth.Rules{Allow: []auth.Rule{{Subjects: []string{"ann"}, Methods: []string{"Words.Sort"}}}})
	if err != nil {
		t.Fatal(err)
	}
	_, _, url := serve(t, mcp.Options{Allow: []string{"*"}}, anser.Authenticate(tokens), anser.Authorize(policy))
	if resp, page := browse(t, url, "Authorization", "Bearer "+token); resp.StatusCode != http.StatusOK || !strings.Contains(page, "Words_Sort") || strings.Contains(page, "Arith") {
		t.Errorf("%s %s", resp.Status, page)
	}
	if resp, page := browse(t, url); resp.StatusCode != http.StatusUnauthorized || strings.Contains(page, "Words") {
		t.Errorf("%s %s", resp.Status, page)
	}
}
