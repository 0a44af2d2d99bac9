package protocols

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/internal/browserguard"
	"github.com/anser-rpc/anser/protocols/internal/host"
)

// AllowOrigins lets pages of these origins call methods from a browser (CORS): "https://app.example"
// each, or "*" for all. Without it, a request with another origin than its own host is refused, and
// so is every request that a browser could have been tricked into.
func AllowOrigins(origins ...string) Option {
	return func(o *options) {
		for _, origin := range origins {
			if err := checkOrigin(origin); err != nil {
				o.errs = append(o.errs, err)
			}
		}
		o.origins = append(o.origins, origins...)
	}
}

// checkOrigin returns why no browser sends this origin. "null" is that of pages without one.
func checkOrigin(origin string) error {
	if origin == "*" || origin == "null" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return fmt.Errorf("protocols.AllowOrigins: %q is not an origin: use for example \"https://app.example\", or \"*\" for all", origin)
	}
	host := strings.ToLower(u.Host)
	if port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	if want := u.Scheme + "://" + host; origin != want {
		return fmt.Errorf("protocols.AllowOrigins: %q is not an origin as browsers send it: use %q", origin, want)
	}
	return nil
}

// AllowOriginsIf lets pages of the origins for which allows returns true call methods from a
// browser, in addition to those of [AllowOrigins]. allows is called for each request with an
// origin, from several goroutines.
func AllowOriginsIf(allows func(origin string) bool) Option {
	return func(o *options) { o.allows = allows }
}

// AllowHosts names hosts, besides IP addresses and localhost, under which browsers reach a server
// on this machine. A request with another one is refused: its name may have been pointed at this
// machine by an attacker (DNS rebinding).
func AllowHosts(hosts ...string) Option {
	return func(o *options) {
		for _, host := range hosts {
			if host == "" || strings.ContainsAny(host, "/:@ ") {
				o.errs = append(o.errs, fmt.Errorf("protocols.AllowHosts: %q is not a host: use a name such as \"app.example\", without scheme and port", host))
			}
		}
		o.hosts = append(o.hosts, hosts...)
	}
}

// AllowHostsIf allows the hosts for which allows returns true, in addition to those of
// [AllowHosts]. allows is called with a host in lower case and without its port, from several
// goroutines.
func AllowHostsIf(allows func(host string) bool) Option {
	return func(o *options) { o.allowsHost = allows }
}

// browsers decides which requests a browser may send.
type browsers struct {
	origins, hosts []string
	also           func(origin string) bool // further origins, or nil
	alsoHost       func(host string) bool   // further hosts, or nil
	open           string                   // path of a page to which any page may have a link; "" for none
}

// allows reports whether a request with these headers may be served. local says that the client is
// on the machine of the server, secure that the connection has TLS, get that any page can send the
// request without its origin, and site what the browser says of the page (Sec-Fetch-Site).
func (b *browsers) allows(origin, site, authority string, local, secure, get bool) bool {
	if origin != "" && b.allowsOrigin(origin) {
		return true
	}
	if site == "cross-site" || site == "same-site" {
		return false // an image or a link of another page, or a page without TLS of the same host
	}
	if origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, authority) {
			return false
		}
		// An attacker on the network writes pages of http://host. Without TLS here, it may end at a
		// proxy, so that the page of https://host is the own one.
		if secure && u.Scheme != "https" {
			return false
		}
	}
	if local && (origin != "" || get) {
		return b.ownHost(authority)
	}
	return true
}

func (b *browsers) allowsOrigin(origin string) bool {
	return slices.Contains(b.origins, "*") || slices.Contains(b.origins, origin) || b.also != nil && b.also(origin)
}

// ownHost reports whether a host cannot have been chosen by an attacker.
func (b *browsers) ownHost(authority string) bool {
	return browserguard.OwnHost(authority, b.hosts) || b.alsoHost != nil && b.alsoHost(browserguard.HostName(authority))
}

// exposedHeaders are the headers of answers that pages may read.
const exposedHeaders = "*, grpc-status, grpc-message, grpc-status-details-bin, anser-outcome"

// handler refuses what a browser may not send, and answers its questions.
func (b *browsers) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		h := host.FromContext(r.Context())
		local := h != nil && browserguard.IsLocal(h.Peer.Local)
		if r.TLS == nil && h != nil {
			r.TLS = h.Peer.TLS
		}
		get := r.Method == http.MethodGet || r.Method == http.MethodHead
		site := r.Header.Get("Sec-Fetch-Site")
		if get && b.open != "" && r.URL.EscapedPath() == b.open && r.Header.Get("Sec-Fetch-Dest") == "document" {
			site = "none" // following a link to a page that says nothing and calls nothing by itself
		}
		if !b.allows(origin, site, r.Host, local, r.TLS != nil, get) {
			http.Error(w, "403 pages of this origin may not call this server: see protocols.AllowOrigins and protocols.AllowHosts, or cors and hosts in the configuration of a gateway", http.StatusForbidden)
			return
		}
		if len(b.origins) > 0 || b.also != nil {
			w.Header().Add("Vary", "Origin")
		}
		if origin != "" && b.allowsOrigin(origin) {
			head := w.Header()
			head.Set("Access-Control-Allow-Origin", origin)
			head.Set("Access-Control-Expose-Headers", exposedHeaders)
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				head.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
				if ask := r.Header.Get("Access-Control-Request-Headers"); ask != "" {
					head.Set("Access-Control-Allow-Headers", ask)
				}
				head.Set("Access-Control-Max-Age", "7200")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
