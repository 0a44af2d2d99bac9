package pagefiles_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/pagefiles"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// The page has nothing that its content security policy would refuse, and loads what is there.
func TestPage(t *testing.T) {
	get := func(path string) string {
		w := httptest.NewRecorder()
		pagefiles.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d", path, w.Code)
		}
		return w.Body.String()
	}
	html := get("/")
	loaded := regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(html, -1)
	for _, m := range loaded {
		get("/" + m[1])
	}
	if len(loaded) < 3 || regexp.MustCompile(`<script>|<style|style=|\son[a-z]+=`).MatchString(html) {
		t.Errorf("the page loads %d files, or has inline code", len(loaded))
	}
	// Names of instances and methods come from others: they must never be parsed as HTML.
	for _, file := range []string{"/console.js", "/views.js", "/draw.js"} {
		if text := get(file); strings.Contains(text, "innerHTML") || strings.Contains(text, "http://") && !strings.Contains(text, "http://www.w3.org/2000/svg") {
			t.Errorf("%s parses HTML, or names another site", file)
		}
	}
}
