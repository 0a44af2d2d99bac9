package accept

import (
	"net"
	"net/netip"
	"strings"
)

// Near reports whether only processes of this machine can reach the address: a loopback IP
// address, the name localhost, a Unix socket, or memory. It is false for an address that it cannot
// parse.
func Near(a net.Addr) bool {
	if a == nil {
		return false
	}
	switch a.Network() {
	case "unix", "unixpacket", "unixgram", "pipe", "memory":
		return true
	}
	return IsLoopback(host(a))
}

// IsLoopback reports whether a host, without a port, can only be this machine: a loopback IP
// address, or the name localhost.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Elsewhere reports whether other machines can certainly reach the address: an IP address other
// than loopback.
func Elsewhere(a net.Addr) bool {
	if a == nil {
		return false
	}
	_, err := netip.ParseAddr(host(a))
	return err == nil && !Near(a)
}

// host returns the host of an address of the form host:port or host:port/path, otherwise the
// address.
func host(a net.Addr) string {
	address, _, _ := strings.Cut(a.String(), "/")
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
