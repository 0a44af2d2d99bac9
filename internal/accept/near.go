package accept

import (
	"net"
	"net/netip"
	"strings"
)

// Near reports whether only processes of this machine reach the address: an IP address of a loopback interface, the name
// localhost, a unix socket, or memory. An address that it cannot read may be reached by others.
func Near(a net.Addr) bool {
	if a == nil {
		return false
	}
	switch a.Network() {
	case "unix", "unixpacket", "unixgram", "pipe", "memory":
		return true
	}
	host := host(a)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Elsewhere reports whether the address is known to be one that other machines reach: an IP address of another
// interface than loopback.
func Elsewhere(a net.Addr) bool {
	if a == nil {
		return false
	}
	_, err := netip.ParseAddr(host(a))
	return err == nil && !Near(a)
}

// host returns the host of an address of the form host:port or host:port/path, or what there is in its place.
func host(a net.Addr) string {
	address, _, _ := strings.Cut(a.String(), "/")
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
