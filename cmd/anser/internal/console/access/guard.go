package access

import (
	"mime"
	"net"
	"net/http"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/internal/browserguard"
)

// Protect sets the headers that keep other sites out of what the console sends.
func Protect(h http.Header) {
	browserguard.Protect(h, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
}

// foreign returns why a request may be one that another site has made a browser send.
func (a *Access) foreign(r *http.Request) *respond.Error {
	if p := a.foreignHost(r); p != nil {
		return p
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none": // none: the user has typed the address
	case "":
		// A browser without Sec-Fetch-Site, or a program. Browsers send Origin with all requests
		// that change something.
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host {
			return fromOtherSite()
		}
	default:
		return fromOtherSite()
	}
	return nil
}

// foreignHost returns why the host of a request may be a name of another site that was made to
// point to this machine (DNS rebinding).
func (a *Access) foreignHost(r *http.Request) *respond.Error {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if (local == nil || browserguard.IsLocal(local) || a.Login() == None) && !browserguard.OwnHost(r.Host, a.o.Hosts) {
		return respond.Problem(http.StatusForbidden, "the host of the request may belong to an attacker", "use an address or localhost, or name the host with --url")
	}
	return nil
}

// pagePolicy lets the page load what the console serves, and nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; font-src 'self'; " +
	"worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Page returns a handler for the files of the page, which can be read without a session, as the
// page shows the login. Other sites may lead to it.
func (a *Access) Page(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		browserguard.Protect(w.Header(), pagePolicy)
		p := a.foreign(r)
		if p != nil && followsLink(r) {
			p = a.foreignHost(r)
		}
		if p == nil && (a.Login() == None || a.Login() == Proxy) {
			_, p = a.identify(r)
		}
		if p == nil && !safe(r.Method) {
			p = respond.Problem(http.StatusMethodNotAllowed, "the page has no such method", "use GET")
		}
		if p != nil {
			w.Header().Set("Cache-Control", "no-store")
			p.Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// followsLink reports whether a browser opens a page because its user has followed a link.
func followsLink(r *http.Request) bool {
	return safe(r.Method) && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// IsJSON reports whether the body of a request says that it is JSON, which forms of other sites
// cannot.
func IsJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

func fromOtherSite() *respond.Error {
	return respond.Problem(http.StatusForbidden, "pages of other sites may not use the console", "open the console itself")
}

// identify returns the author of a request, or why it has none.
func (a *Access) identify(r *http.Request) (identity, *respond.Error) {
	switch a.Login() {
	case None:
		if !browserguard.FromThisMachine(r) {
			return identity{}, respond.Problem(http.StatusForbidden, "the console has no login, and the request does not come from this machine alone", "behind a proxy, use --proxy-header or another login")
		}
		return identity{user: User{Name: ThisMachine, Role: Administer}, csrf: a.token("none")}, nil
	case Proxy:
		u, p := a.o.Proxy.user(r)
		if p == nil {
			a.words.hear(u)
		}
		return identity{user: u, csrf: a.token("proxy " + u.Name)}, p
	}
	s := a.sessions.find(r, a.cookie())
	if s != nil && !a.lasts(s) {
		a.sessions.end(s)
		s = nil
	}
	if s == nil {
		return identity{}, respond.Problem(http.StatusUnauthorized, "there is no session, or it has ended", "log in")
	}
	return identity{user: s.user, session: s, csrf: a.token("session " + s.key)}, nil
}
