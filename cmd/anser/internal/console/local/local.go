// Package local guards a console that only this machine reaches, which needs no login: it keeps
// pages of other sites, which a browser on this machine shows, from reading it.
package local

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/internal/browserguard"
)

// Check returns an error if a console must not listen on the address, "host:port".
func Check(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return fmt.Errorf("the console on %q: the address has no port: use host:port, such as 127.0.0.1:8980", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("the console on %q: other machines reach the address, and the console has no login: "+
			"use a loopback address, and a tunnel such as ssh -L 8980:127.0.0.1:8980 HOST", address)
	}
	return nil
}

// Listen listens on a loopback address, "host:port".
func Listen(address string) (net.Listener, error) {
	if err := Check(address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the console: listen on %s: %w", address, err)
	}
	return l, nil
}

// Server returns a server for a console.
func Server(console http.Handler) *http.Server {
	return &http.Server{
		Handler: console, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // what net/http says about single connections
	}
}

// Guard answers requests of pages of the console and of programs on this machine alone, and
// requests that read alone.
func Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		browserguard.Protect(w.Header(), policy)
		if status, text := refuse(r); status != 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			json.NewEncoder(w).Encode(model.Error{Error: text})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuse returns why a request is not answered.
func refuse(r *http.Request) (status int, text string) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	switch {
	case !browserguard.IsLocal(local):
		return http.StatusForbidden, "the console answers on loopback addresses alone"
	case !browserguard.OwnHost(r.Host, nil):
		return http.StatusForbidden, "the host of the request may belong to an attacker: use an IP address or localhost"
	case crossSite(r):
		return http.StatusForbidden, "pages of other sites may not use the console"
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, "the console changes nothing: use GET"
	}
	return 0, ""
}

// crossSite reports whether a page of another site has made the request. A link to the console is
// fine.
func crossSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "none", "same-origin":
		return false
	case "":
		origin := r.Header.Get("Origin")
		return origin != "" && origin != "http://"+r.Host
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// policy keeps everything from other sites out of the page, and the page out of theirs.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
