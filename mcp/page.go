package mcp

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/anser-rpc/anser/protocols"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

// pageTemplate is parsed when a page is first asked for.
var pageTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(pageText)) })

// wantsPage reports whether a request is that of a browser, which speaks no protocol of agents.
func wantsPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// listed is a tool on the page.
type listed struct {
	Name, Method, Description string
	Hints                     []string
	Input, Output             string // JSON Schema
}

// servePage shows the tools of the caller to a person.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request, source Source) {
	at := &session{server: s, source: source}
	if err := at.countList(); err != nil {
		protocols.WriteError(w, err)
		return
	}
	tools, err := at.tools(r.Context())
	if err != nil {
		protocols.WriteError(w, err)
		return
	}
	page := struct {
		Name, Config string
		Style        template.CSS
		Compact      bool
		Tools        []listed
	}{Name: s.o.Name, Config: s.clientConfig(r), Style: template.CSS(pageStyle), Compact: s.o.Compact}
	for _, t := range tools {
		one := listed{
			Name: t.sdk.Name, Method: t.method.FullName(), Description: t.sdk.Description,
			Input: indented(t.sdk.InputSchema), Output: indented(t.sdk.OutputSchema),
		}
		if t.sdk.Annotations.ReadOnlyHint {
			one.Hints = append(one.Hints, "reads only")
		} else if t.sdk.Annotations.IdempotentHint {
			one.Hints = append(one.Hints, "may be repeated")
		}
		page.Tools = append(page.Tools, one)
	}
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, page); err != nil {
		protocols.WriteError(w, err)
		return
	}
	sum := sha256.Sum256([]byte(pageStyle))
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.Write(b.Bytes())
}

// clientConfig returns the lines that name this server to an agent.
func (s *Server) clientConfig(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	type server struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	}
	return indented(map[string]map[string]server{"mcpServers": {s.o.Name: {"http", scheme + r.Host + r.URL.Path}}})
}

// indented returns a value in JSON, or "" for none.
func indented(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
