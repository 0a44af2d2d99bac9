package pagefiles_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/pagefiles"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

func get(t *testing.T, path string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for key, values := range header {
		r.Header[key] = values
	}
	w := httptest.NewRecorder()
	pagefiles.Handler().ServeHTTP(w, r)
	return w
}

// The page has nothing that its content security policy would refuse, and loads what is there.
func TestPage(t *testing.T) {
	html := get(t, "/", nil).Body.String()
	loaded := regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(html, -1)
	for _, m := range loaded {
		if w := get(t, path.Join("/", m[1]), nil); w.Code != http.StatusOK {
			t.Errorf("%s: %d", m[1], w.Code)
		}
	}
	if len(loaded) < 3 || regexp.MustCompile(`<script>|<style|style=|\son[a-z]+=`).MatchString(html) {
		t.Errorf("the page loads %d files, or has inline code", len(loaded))
	}
	if w := get(t, "/missing.js", nil); w.Code != http.StatusNotFound {
		t.Errorf("a file that is not there: %d", w.Code)
	}
}

// Limits of the build, in bytes.
const (
	maxBuild = 1_500_000
	maxFirst = 300_000 // what the first view of a browser loads, compressed
)

// The build stays small: all of it is in the program, and the first view is over a tunnel at times.
func TestSize(t *testing.T) {
	list, err := filepath.Glob("files/*")
	if err != nil {
		t.Fatal(err)
	}
	all, first := 0, 0
	for _, name := range list {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += len(data)
		switch name := filepath.Base(name); name {
		case "index.html", "index.js", "index.css", "icon.svg", "map.js": // the overview
			w := get(t, "/"+name, http.Header{"Accept-Encoding": {"gzip"}})
			if name == "index.html" {
				w = get(t, "/", http.Header{"Accept-Encoding": {"gzip"}})
			}
			first += w.Body.Len()
		}
	}
	t.Logf("%d files with %d bytes, and %d compressed for the first view", len(list), all, first)
	if len(list) < 8 || all > maxBuild || first < 10_000 || first > maxFirst {
		t.Errorf("%d files have %d bytes: want %d at most; the first view loads %d: want %d at most", len(list), all, maxBuild, first, maxFirst)
	}
}

func TestCompression(t *testing.T) {
	plain := get(t, "/index.js", nil)
	small := get(t, "/index.js", http.Header{"Accept-Encoding": {"br, gzip"}})
	if small.Header().Get("Content-Encoding") != "gzip" || small.Body.Len()*2 > plain.Body.Len() {
		t.Fatalf("%d of %d bytes, headers %v", small.Body.Len(), plain.Body.Len(), small.Header())
	}
	r, err := gzip.NewReader(small.Body)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); err != nil || !bytes.Equal(data, plain.Body.Bytes()) {
		t.Errorf("compressed data differ: %v", err)
	}
	tag := small.Header().Get("Etag")
	if tag == "" || tag == plain.Header().Get("Etag") {
		t.Errorf("tags %q and %q: want different ones", tag, plain.Header().Get("Etag"))
	}
	again := get(t, "/index.js", http.Header{"Accept-Encoding": {"gzip"}, "If-None-Match": {tag}})
	if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("a file that has not changed: %d with %d bytes", again.Code, again.Body.Len())
	}
}

// Names of instances and methods come from others: the page never parses them as HTML, which a
// search in the source holds, as React itself names these properties.
func TestNoMarkup(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../web/src", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|https?://`).Find(data); bad != nil {
			t.Errorf("%s has %s", path, bad)
		}
		found++
		return err
	})
	if err != nil || found < 20 {
		t.Errorf("%d files: %v", found, err)
	}
}
