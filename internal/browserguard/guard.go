// Package browserguard has the checks with which a server on a machine keeps pages of other sites
// from using it through a browser on that machine.
package browserguard

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// Protect sets the fields of an answer that keep other sites from reading it, from showing it in a
// frame, and from learning about it by references. policy is its Content-Security-Policy.
func Protect(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// OwnHost reports whether an attacker cannot have chosen the host that a request asks for: it is an
// IP address, localhost, or one of hosts. Any other name may have been pointed at this machine (DNS
// rebinding).
func OwnHost(authority string, hosts []string) bool {
	name := HostName(authority)
	if net.ParseIP(name) != nil || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	return slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// HostName returns the host of a request without its port and brackets, in lower case.
func HostName(authority string) string {
	name := authority
	if h, _, err := net.SplitHostPort(authority); err == nil {
		name = h
	}
	return strings.ToLower(strings.Trim(name, "[]"))
}

// IsLocal reports whether an address is one of this machine only. So is nil.
func IsLocal(a net.Addr) bool {
	switch a := a.(type) {
	case nil:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

// ofProxies are fields that proxies add, besides X-Forwarded-For and the like.
var ofProxies = [...]string{
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For", "X-Envoy-External-Address",
	"Cf-Connecting-Ip", "True-Client-Ip", "Fastly-Client-Ip", "Fly-Client-Ip",
}

// FromThisMachine reports whether the request comes from this machine, and not through a proxy.
func FromThisMachine(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") || slices.Contains(ofProxies[:], name) {
			return false
		}
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && !IsLocal(local) {
		return false
	}
	if _, ok := local.(*net.UnixAddr); ok {
		return true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}
