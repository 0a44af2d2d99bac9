package admin

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/browserguard"
)

// A refusal is why a request is not answered.
type refusal struct {
	status int
	text   string
}

// refuse returns why the request is not answered, or nil.
func (p *Page) refuse(r *http.Request) *refusal {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr) // nil: package protocols has checked hosts
	strange := local != nil && !browserguard.OwnHost(r.Host, p.o.hosts)
	if strange && browserguard.IsLocal(local) {
		return strangeHost()
	}
	if crossSite(r) {
		return &refusal{http.StatusForbidden, "pages of other sites may not use the admin page"}
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return &refusal{http.StatusMethodNotAllowed, "the admin page changes nothing: use GET"}
	}
	if len(p.o.tokens)+len(p.o.authorize) == 0 {
		if !browserguard.FromThisMachine(r) {
			return &refusal{http.StatusForbidden, "the admin page answers this machine alone without authentication: see admin.Token and admin.Authorize"}
		}
		return nil
	}
	for _, has := range p.o.tokens {
		if has(r) {
			return nil
		}
	}
	for _, allows := range p.o.authorize {
		if !allows(r) {
			continue
		}
		// The function may look at the address alone, and a script can send any credentials under a
		// name that it points here. With TLS the browser has checked the name.
		if strange && r.TLS == nil && !strings.EqualFold(browserguard.HostName(r.Host), p.self.Host) {
			return strangeHost()
		}
		return nil
	}
	if r.Header.Get("Authorization") != "" {
		p.guesses.add(p.o.log, r.RemoteAddr)
	}
	if len(p.o.tokens) > 0 {
		return &refusal{http.StatusUnauthorized, "the admin page needs a token, as in Authorization: Bearer TOKEN"}
	}
	return &refusal{http.StatusForbidden, "the admin page is not for you"}
}

func strangeHost() *refusal {
	return &refusal{http.StatusForbidden, "the host of the request may belong to an attacker: use an IP address or localhost, or see admin.AllowHosts"}
}

// guesses counts requests whose credentials were wrong.
type guesses struct {
	mu    sync.Mutex // guards the fields below
	count int        // since the log had the last one
	said  time.Time
}

// sayEvery is the time between two lines of the log about wrong credentials.
const sayEvery = time.Minute

func (g *guesses) add(log *slog.Logger, from string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
	if now := time.Now(); g.said.IsZero() || now.Sub(g.said) >= sayEvery {
		log.Warn("the admin page refused wrong credentials", "requests", g.count, "last_from", from)
		g.count, g.said = 0, now
	}
}

// crossSite reports whether a page of another site has made the request. Following a link to a page
// is fine: it says nothing to the other one, and does nothing.
func crossSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return r.Header.Get("Origin") != "" && r.Header.Get("Sec-Fetch-Site") == ""
	}
	return r.Header.Get("Sec-Fetch-Dest") != "document" || !linkable(r)
}

// linkable reports whether a request is for a page in HTML: what others may have links to costs
// nothing, and holds nothing.
func linkable(r *http.Request) bool {
	name, rest := split(r)
	name, form, ok := strings.Cut(name, ".")
	if rest != "" || ok && form != "html" || !ok && formOf(r) != "html" {
		return false
	}
	return name == "index" || name == "calls" || find(name) != nil
}

// policy keeps everything from other sites out of the page, and the page out of theirs.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func protect(h http.Header) {
	browserguard.Protect(h, policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
}
