package site_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
)

func TestArena(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.html")
	want, err := os.ReadFile("../../../../../arena/results/report.html")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(report, want, 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, open(t, site.Options{Arena: report}).URL())
	status, text, answer := b.send("GET", "/api/arena", "")
	p := answer.Header.Get("Content-Security-Policy")
	if status != 200 || text != string(want) || !strings.HasPrefix(p, "sandbox ") || strings.Contains(p, "allow-same-origin") || answer.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("%d, %d bytes, %v", status, len(text), answer.Header)
	}
	if _, text, _ := b.send("GET", "/api/system", ""); !strings.Contains(text, `"arena":true`) {
		t.Errorf("the system is %s", text)
	}
	// The file is read for each request.
	for _, change := range []func() error{
		func() error { return os.WriteFile(report, make([]byte, 9<<20), 0o600) },
		func() error { return os.Remove(report) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		var problem struct{ Error, Advice string }
		status, text, _ := b.send("GET", "/api/arena", "")
		if json.Unmarshal([]byte(text), &problem); status != 404 || problem.Error == "" || !strings.Contains(problem.Advice, "--arena") || strings.Contains(text, report) {
			t.Errorf("%d %.100s", status, text)
		}
	}
	b = newBrowser(t, open(t, site.Options{}).URL())
	if status, _, _ := b.send("GET", "/api/arena", ""); status != 404 {
		t.Errorf("without a report: %d", status)
	}
}

// A report that cannot be read is an error at the start.
func TestArenaAtStart(t *testing.T) {
	dir := t.TempDir()
	large, empty := filepath.Join(dir, "large.html"), filepath.Join(dir, "empty.html")
	if err := errors.Join(os.WriteFile(large, make([]byte, 9<<20), 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{dir: "is a folder", large: "more than", empty: "is empty", "/nowhere.html": "no such file"} {
		_, err := site.Open(t.Context(), site.Options{Listen: "127.0.0.1:0", Arena: file})
		if _, usage := errors.AsType[*site.UsageError](err); !usage || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--html") || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
