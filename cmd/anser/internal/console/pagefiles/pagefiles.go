// Package pagefiles has the files of the console's page, as scripts/generators/console builds them
// from the folder web. The page loads nothing from elsewhere.
package pagefiles

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed files
var files embed.FS

// file is a file as it is sent.
type file struct {
	kind, tag    string
	plain, small []byte // small is compressed by gzip, and nil if that saves nothing
}

// all returns the files by their paths. They are compressed once, when the first is asked for.
var all = sync.OnceValue(func() map[string]*file {
	out := make(map[string]*file)
	fs.WalkDir(files, "files", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		f := &file{kind: kindOf(name), tag: `"` + hex.EncodeToString(sum[:8]) + `"`, plain: data}
		if small := compress(data); len(small) < len(data) {
			f.small = small
		}
		out[strings.TrimPrefix(name, "files/")] = f
		return nil
	})
	return out
})

// kindOf does not ask the machine's own list of types, which may lack some.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func compress(data []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

// Handler serves the page. Browsers ask each time whether a file has changed, so that a console
// that is replaced by another version shows its own page.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name == "" {
			name = "index.html"
		}
		f := all()[name]
		if f == nil {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Type", f.kind)
		h.Set("Vary", "Accept-Encoding")
		data, tag := f.plain, f.tag
		if f.small != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			data, tag = f.small, strings.TrimSuffix(f.tag, `"`)+`-gzip"`
		}
		h.Set("Etag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Write(data)
	})
}
