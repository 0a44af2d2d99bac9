package command_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// send makes a request of a program and returns the answer.
func send(t *testing.T, client *http.Client, method, url, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-CSRF-Token", token)
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(data)
}

// csrfToken returns the token that changes need.
func csrfToken(t *testing.T, client *http.Client, base string) string {
	t.Helper()
	var session struct{ CSRF string }
	_, text := send(t, client, "GET", base+"session", "", "")
	if err := json.Unmarshal([]byte(text), &session); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return session.CSRF
}

func TestConsoleChanges(t *testing.T) {
	_, file, _ := twoVersions(t)
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	base := startConsole(t, "--listen", "127.0.0.1:0", "--audit", log) + "api/"
	token := csrfToken(t, client, base)
	const drain = `{"service":"arith","instance":"arith-1","state":"draining","reason":"a test"}`
	if status, text := send(t, client, "POST", base+"instances", "", drain); status != 403 {
		t.Errorf("without a token: %d %s", status, text)
	}
	if status, text := send(t, client, "POST", base+"instances", token, drain); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	if status, text := send(t, client, "POST", base+"call", token, `{"service":"arith","method":"Arith.Mul","request":{"A":6,"B":7}}`); status != 200 || !strings.Contains(text, `"C":42`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := send(t, client, "POST", base+"canary", token, `{"service":"arith","version":"2.0","share":10,"bounds":{"errors":0.5}}`); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	d, err := route.Load(t.Context(), file, "arith")
	if err != nil || d.Rules.Adjust(registry.Instance{ID: "arith-1"}).State != registry.Draining || len(d.Rules.Split) != 1 {
		t.Errorf("the rules are %+v, %v", d, err)
	}

	run(t, "console", "audit", log).expect(t, 0, "6 entries, and none was changed", "Entries may have been removed from the end", "--head")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := audit.Verify(log, "")
	if err != nil {
		t.Fatal(err)
	}
	run(t, "console", "audit", log, "--head", sum.Hash).expect(t, 0, "the one of entry 6: nothing up to there was changed or removed")
	run(t, "console", "audit", log, "--head", sum.Hash, "--json").expect(t, 0, `"vouched": 6`)
	cut := filepath.Join(t.TempDir(), "cut.jsonl")
	for lines, says := range map[int]string{5: "5 entries, and none was changed", 0: "The log has no entries."} {
		if err := os.WriteFile(cut, bytes.Join(bytes.SplitAfter(data, []byte("\n"))[:lines], nil), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "console", "audit", cut).expect(t, 0, says, "Entries may have been removed from the end")
		run(t, "console", "audit", cut, "--head", sum.Hash).expect(t, 1, "no entry has the hash that was given: entries were removed")
	}
	other := filepath.Join(t.TempDir(), "changed.jsonl")
	if err := os.WriteFile(other, []byte(strings.Replace(string(data), "a test", "a joke", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "console", "audit", other).expect(t, 1, "line 1: the entry was changed")
}
