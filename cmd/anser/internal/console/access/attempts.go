package access

import (
	"context"
	"crypto/hmac"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of logins against the guessing of passwords. Comparing them leaves the processor to
// others.
const (
	loginEvery = 6 * time.Second // of one address, after the first ones
	loginBurst = 10
	allLogins  = 5 // a second, of all addresses
	allBurst   = 20
	atOnce     = 2
	maxSources = 10_000
)

// attempts bounds logins.
type attempts struct {
	running, known chan struct{} // known: of browsers in which the user has logged in before
	all            *rate.Limiter

	mu      sync.Mutex // guards the fields below
	from    map[netip.Prefix]*rate.Limiter
	browser map[string]*rate.Limiter // by the number in the cookie of a known one
}

func (a *attempts) start() {
	a.running, a.known = make(chan struct{}, atOnce), make(chan struct{}, 1)
	a.all = rate.NewLimiter(allLogins, allBurst)
	a.from, a.browser = make(map[netip.Prefix]*rate.Limiter), make(map[string]*rate.Limiter)
}

// source returns the network that counts as one source: an address of IPv4, or the 64 bits that a
// site of IPv6 has. Behind a proxy that is trusted it is the one that the proxy names.
func (a *Access) source(r *http.Request) netip.Prefix {
	ip := a.forwardedFor(r)
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits) // the zero value without an address
	return p
}

// begin reports whether a login from a source may be tried. browser is the number of a known
// browser, or "". After true, done must be called.
func (a *attempts) begin(ctx context.Context, from netip.Prefix, browser string) (done func(), ok bool) {
	slots := a.running
	if browser != "" {
		if !a.limiterOf(browser).Allow() {
			return nil, false
		}
		slots = a.known
	} else if !a.limiter(from).Allow() || !a.all.Allow() {
		return nil, false
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, true
	case <-ctx.Done():
		return nil, false
	}
}

func (a *attempts) limiter(p netip.Prefix) *rate.Limiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	return find(a.from, p, a.all)
}

func (a *attempts) limiterOf(browser string) *rate.Limiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	return find(a.browser, browser, a.all)
}

// find returns the limiter of a source, or others if there are too many: many attack then, and the
// common limit holds.
func find[K comparable](from map[K]*rate.Limiter, key K, others *rate.Limiter) *rate.Limiter {
	if l := from[key]; l != nil {
		return l
	}
	if len(from) >= maxSources {
		for key, l := range from {
			if l.Tokens() >= loginBurst { // as good as new
				delete(from, key)
			}
		}
	}
	if len(from) >= maxSources {
		return others
	}
	l := rate.NewLimiter(rate.Every(loginEvery), loginBurst)
	from[key] = l
	return l
}

// knownFor is how long a browser is known.
const knownFor = 30 * 24 * time.Hour

func (a *Access) knownCookie() string { return a.cookie() + "-known" }

// ofUser names a user of the console for the cookie of a known browser.
func ofUser(name string) string { return "user " + name }

// browser returns the number of the browser if the user, or one of the provider, has logged in with
// it before, or "". Such a browser has a limit of its own, so that strangers cannot keep the user
// out by logins. of is ofUser or ofProvider.
func (a *Access) browser(r *http.Request, of string) string {
	list := r.CookiesNamed(a.knownCookie())
	if len(list) != 1 {
		return ""
	}
	number, mac, _ := strings.Cut(list[0].Value, ".")
	if !hmac.Equal([]byte(mac), []byte(a.browserToken(number, of))) {
		return ""
	}
	return number
}

// browserToken hashes the number, which comes from the browser: it has one length then, and cannot
// have a part of the name.
func (a *Access) browserToken(number, of string) string {
	return a.token("browser " + hashed(number) + " " + of)
}

// know sets the cookie of a browser in which a user has logged in. It is of no use for anything but
// a further login of the user.
func (a *Access) know(w http.ResponseWriter, browser, of string) {
	if browser == "" {
		browser = random()
	}
	a.set(w, a.knownCookie(), browser+"."+a.browserToken(browser, of), knownFor)
}
