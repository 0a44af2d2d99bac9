package openapi

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// The parts of the page. They are put into one file, which loads nothing but the document.
//
//go:embed page
var parts embed.FS

// The scripts share one scope, in this order; the last one starts them.
var (
	styles  = []string{"page.css"}
	scripts = []string{"dom.js", "document.js", "schema.js", "request.js", "send.js", "method.js", "list.js", "main.js"}
)

// page is the page with its policy, which allows what is written in it, by hash, and requests to
// the server itself.
type page struct {
	data   []byte
	policy string
	tag    string
}

// thePage is made when it is first asked for. Its parts are files of this package.
var thePage = sync.OnceValues(makePage)

func makePage() (*page, error) {
	style, err := joined(styles)
	if err != nil {
		return nil, err
	}
	script, err := joined(scripts)
	if err != nil {
		return nil, err
	}
	script = "\"use strict\";\n(() => {\n" + script + "})();\n"
	frame, err := joined([]string{"page.html"})
	if err != nil {
		return nil, err
	}
	// A template calls methods by name, for which the linker keeps those of all types.
	data := []byte(strings.NewReplacer("{{style}}", style, "{{script}}", script).Replace(frame))
	sum := sha256.Sum256(data)
	return &page{
		data: data,
		policy: fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			sourceHash(script), sourceHash(style)),
		tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`,
	}, nil
}

func joined(names []string) (string, error) {
	var b strings.Builder
	for _, name := range names {
		content, err := parts.ReadFile("page/" + name)
		if err != nil {
			return "", err
		}
		b.Write(content)
	}
	return b.String(), nil
}

// sourceHash is how a policy names a script or a style in the page.
func sourceHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// servePage serves the page. It is the same for all callers and tells nothing of the methods.
func servePage(w http.ResponseWriter, r *http.Request) {
	p, err := thePage()
	if err != nil {
		http.Error(w, "500 "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", p.tag)
	h.Set("Content-Type", "text/html; charset=utf-8")
	if exchange.Matches(r.Header.Values("If-None-Match"), p.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(p.data)))
	w.Write(p.data)
}
