package access

import (
	"net"
	"net/http"
	"net/netip"
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
	running chan struct{}
	all     *rate.Limiter

	mu   sync.Mutex // guards the field below
	from map[netip.Prefix]*rate.Limiter
}

func (a *attempts) start() {
	a.running = make(chan struct{}, atOnce)
	a.all = rate.NewLimiter(allLogins, allBurst)
	a.from = make(map[netip.Prefix]*rate.Limiter)
}

// source returns the network that counts as one source: an address of IPv4, or the 64 bits that a
// site of IPv6 has.
func source(r *http.Request) netip.Prefix {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	ip = ip.Unmap()
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.WithZone("").Prefix(bits)
	return p
}

// begin reports whether a login may be tried. After true, done must be called.
func (a *attempts) begin(r *http.Request) (done func(), ok bool) {
	if !a.limiter(source(r)).Allow() || !a.all.Allow() {
		return nil, false
	}
	select {
	case a.running <- struct{}{}:
		return func() { <-a.running }, true
	case <-r.Context().Done():
		return nil, false
	}
}

func (a *attempts) limiter(p netip.Prefix) *rate.Limiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.from[p]; l != nil {
		return l
	}
	if len(a.from) >= maxSources {
		for p, l := range a.from {
			if l.Tokens() >= loginBurst { // as good as new
				delete(a.from, p)
			}
		}
	}
	if len(a.from) >= maxSources {
		return a.all // many addresses attack: the common limit holds
	}
	l := rate.NewLimiter(rate.Every(loginEvery), loginBurst)
	a.from[p] = l
	return l
}
