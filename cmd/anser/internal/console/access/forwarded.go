package access

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// peer returns the address that a request comes from; the zero value if it has none.
func peer(r *http.Request) netip.Addr {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return ip.Unmap().WithZone("")
}

func within(list []netip.Prefix, ip netip.Addr) bool {
	return ip.IsValid() && slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// trusted returns the addresses of the proxies in front.
func (a *Access) trusted() []netip.Prefix {
	if a.o.Proxy != nil {
		return a.o.Proxy.From
	}
	return a.o.Trusted
}

// forwardedFor returns the address that a request of a proxy in front was made from, as the last
// proxy that can be trusted says in X-Forwarded-For: what is left of it in the header comes from
// the client. It returns the address of the request if that is no proxy in front.
func (a *Access) forwardedFor(r *http.Request) netip.Addr {
	at, proxies := peer(r), a.trusted()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && within(proxies, at); i-- {
		ip, err := parseHop(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		at = ip
	}
	return at
}

// parseHop parses an address in X-Forwarded-For. Some proxies add the port.
func parseHop(text string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		var with netip.AddrPort
		with, err = netip.ParseAddrPort(text)
		ip = with.Addr()
	}
	return ip.Unmap().WithZone(""), err
}

// Remote returns where a request comes from, as a text for people: with the client's address that a
// proxy in front names.
func (a *Access) Remote(r *http.Request) string {
	if at := a.forwardedFor(r); at != peer(r) {
		return at.String() + " through " + r.RemoteAddr
	}
	return r.RemoteAddr
}
