package admin

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/anser-rpc/anser/internal/printable"
)

// templates are parsed once; the text is part of the program.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"nav":      func() []page { return pages[:] },
	"path":     func(p page) string { return p.path },
	"title":    func(p page) string { return p.title },
	"label":    func(p *page) string { return p.title },
	"rowKey":   rowKey,
	"long":     func(text string) bool { return len(text) > longText },
	"span":     span,
	"text":     printable.Text,
	"fraction": func(f float64) string { return fmt.Sprintf("%.2f", 100*f) },
}).ParseFS(assets, "assets/*.html"))

func (v *view) serveHTML(w http.ResponseWriter) { serveTemplate(w, "page.html", v) }

func serveTemplate(w http.ResponseWriter, name string, data any) {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, "500 "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(b.Bytes())
}

// navigation is what the links to the pages need.
type navigation struct {
	Base  string // the path from the page to the overview
	At    string
	Extra []link
}

// Nav returns the links of the page.
func (v *view) Nav() navigation { return navigation{v.Base(), v.Page.path, v.Extra} }

// Base returns the path from the page to the overview.
func (v *view) Base() string {
	return cmp.Or(strings.Repeat("../", strings.Count(v.Page.path, "/")), "./")
}
