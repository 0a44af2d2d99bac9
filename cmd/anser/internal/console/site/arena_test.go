package site_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
)

func TestArena(t *testing.T) {
	const report = "../../../../../arena/results/report.html"
	b := newBrowser(t, open(t, site.Options{Arena: report}).URL())
	want, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	status, text, answer := b.send("GET", "/api/arena", "")
	p := answer.Header.Get("Content-Security-Policy")
	if status != 200 || text != string(want) || !strings.HasPrefix(p, "sandbox ") || strings.Contains(p, "allow-same-origin") || answer.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("%d, %d bytes, %v", status, len(text), answer.Header)
	}
	if _, text, _ := b.send("GET", "/api/system", ""); !strings.Contains(text, `"arena":true`) {
		t.Errorf("the system is %s", text)
	}
	large := filepath.Join(t.TempDir(), "large.html")
	if err := os.WriteFile(large, make([]byte, 9<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{large, "/nowhere.html"} {
		b := newBrowser(t, open(t, site.Options{Arena: file}).URL())
		var problem struct{ Error, Advice string }
		status, text, _ := b.send("GET", "/api/arena", "")
		if json.Unmarshal([]byte(text), &problem); status != 404 || problem.Error == "" || !strings.Contains(problem.Advice, "--arena") || strings.Contains(text, file) {
			t.Errorf("%s: %d %.100s", file, status, text)
		}
	}
	b = newBrowser(t, open(t, site.Options{}).URL())
	if status, _, _ := b.send("GET", "/api/arena", ""); status != 404 {
		t.Errorf("without a report: %d", status)
	}
}
