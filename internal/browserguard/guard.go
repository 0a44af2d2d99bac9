// Package browserguard has the checks with which a server on a machine keeps pages of other sites
// from using it through a browser on that machine.
package browserguard

import (
	"net"
	"slices"
	"strings"
)

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
