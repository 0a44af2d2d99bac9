package netrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"sync"

	"github.com/anser-rpc/anser/internal/link"
)

// connected is the status of the answer to CONNECT, which net/rpc's clients compare.
const connected = "200 Connected to Go RPC"

// ServeHTTP turns a CONNECT request into a connection over gob, and serves it until it ends. The
// server is an http.Handler: http.Serve(l, s) serves it under every path. A request to an address
// that other machines can reach is rejected with 403, unless it came over TLS and the server has
// Authenticate, or InsecurePublic.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s == nil {
		s.log().Error("rpc.ServeHTTP", "err", errNoServer)
		http.Error(w, "503 there is no server", http.StatusServiceUnavailable)
		return
	}
	if r.Method != http.MethodConnect {
		w.Header().Set("Allow", http.MethodConnect)
		http.Error(w, "405 must CONNECT", http.StatusMethodNotAllowed)
		return
	}
	if s.refusesHTTP(w, r) {
		return
	}
	from := origin{ctx: context.WithoutCancel(r.Context()), request: r}
	if s.Authenticate != nil {
		if from.identity, from.known = s.ask(r.Context(), httpCredentials(r)); !from.known {
			refuseHTTP(w)
			return
		}
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		if errors.Is(err, http.ErrNotSupported) {
			// An HTTP/2 connection cannot be taken over.
			http.Error(w, "505 CONNECT to RPC needs HTTP/1", http.StatusHTTPVersionNotSupported)
		}
		s.log().Warn("rpc: hijacking failed", "peer", r.RemoteAddr, "err", err)
		return
	}
	defer conn.Close() // also if an observer panics: net/http leaves a connection open that was taken over
	if _, err := io.WriteString(conn, "HTTP/1.0 "+connected+"\n\n"); err != nil {
		return
	}
	// A client may already have sent requests after its CONNECT.
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	s.serveLink(link.New(conn, bytes.Clone(early)), newGobServerCodec, from)
}

// refusesHTTP rejects a request without the required protection, and reports whether it did.
func (s *Server) refusesHTTP(w http.ResponseWriter, r *http.Request) bool {
	err := s.checkRequest(r)
	if err == nil {
		return false
	}
	s.log().Warn("rpc: a request is refused", "peer", r.RemoteAddr, "err", err)
	http.Error(w, "403 the server needs TLS and authentication to be reached from other machines", http.StatusForbidden)
	return true
}

func refuseHTTP(w http.ResponseWriter) {
	w.Header().Add("WWW-Authenticate", "Bearer")
	w.Header().Add("WWW-Authenticate", `Basic realm="rpc"`)
	http.Error(w, "401 unauthorized", http.StatusUnauthorized)
}

// HandleHTTP registers the server on http.DefaultServeMux under rpcPath, and a page that lists its
// methods under debugPath; either may be "". This is net/rpc's own behavior, and as there it
// panics if a path is already registered. Prefer [Server.HandleHTTPMux]: all packages of the
// process that register handlers share http.DefaultServeMux, and a server that uses it exposes all
// of them.
func (s *Server) HandleHTTP(rpcPath, debugPath string) {
	s.HandleHTTPMux(http.DefaultServeMux, rpcPath, debugPath)
}

// HandleHTTPMux registers the server on mux under rpcPath, and a page that lists its methods under
// debugPath; either may be "". It panics if a path is already registered, like ServeMux. With
// [Server.Authenticate] the page also requires credentials.
func (s *Server) HandleHTTPMux(mux *http.ServeMux, rpcPath, debugPath string) {
	if mux == nil {
		s.log().Error("rpc: not registered", "err", errNoMux)
		return
	}
	if rpcPath != "" {
		mux.Handle(rpcPath, s)
	}
	if debugPath != "" {
		mux.HandleFunc(debugPath, s.serveDebug)
	}
}

// debugPage is parsed when the page is first asked for.
var debugPage = sync.OnceValue(func() *template.Template { return template.Must(template.New("").Parse(debugText)) })

const debugText = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Services</title></head>
<body>
<h1>Services</h1>
<p>{{.Conns}} connections, {{.InFlight}} calls in flight; {{.Refused}} calls refused, {{.Panics}} panics,
{{.Broken}} connections broken.</p>
<table>
<tr><th align="left">Method</th><th align="right">Calls</th><th align="right">Failed</th></tr>
{{range .Methods}}<tr><td>{{.Name}}({{.Signature}})</td><td align="right">{{.Calls}}</td><td align="right">{{.Failed}}</td></tr>
{{range .Aliases}}<tr><td>&emsp;{{.Name}}{{if .Deprecated}}, deprecated{{end}}</td><td align="right">{{.Calls}}</td><td></td></tr>
{{end}}{{end}}</table>
</body>
</html>
`

// serveDebug serves the methods and the counters.
func (s *Server) serveDebug(w http.ResponseWriter, r *http.Request) {
	if s == nil {
		s.ServeHTTP(w, r)
		return
	}
	if s.refusesHTTP(w, r) {
		return
	}
	switch {
	case s.Authenticate != nil:
		if _, ok := s.ask(r.Context(), httpCredentials(r)); !ok {
			refuseHTTP(w)
			return
		}
	case s.authenticates(): // by Server.Anser, whose policy is about methods and not about pages
		http.Error(w, "403 the page is not shown by a server whose clients authenticate themselves to Server.Anser", http.StatusForbidden)
		return
	}
	type row struct {
		MethodStats
		Signature string
	}
	page := struct {
		Stats
		Methods []row
	}{Stats: s.Stats()}
	table := s.table()
	for _, m := range page.Stats.Methods {
		of := table.methods[m.Name].method
		page.Methods = append(page.Methods, row{m, fmt.Sprintf("%s, *%s", of.argument, of.reply)})
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := debugPage().Execute(w, page); err != nil {
		s.log().Debug("rpc: writing the debug page", "err", err)
	}
}
