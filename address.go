package anser

import (
	"crypto/tls"
	"net"
	"net/netip"
	"strings"
)

// splitAddress returns the network and the address for net.Dial; for the address of a transport,
// its scheme and the rest.
func splitAddress(address string) (network, host string) {
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		return scheme, rest
	}
	return "tcp", address
}

// ipOf returns the IP address in a, whatever its transport, if there is one.
func ipOf(a net.Addr) (ip netip.Addr, ok bool) {
	if a == nil {
		return ip, false
	}
	if own, is := a.(interface{ AddrPort() netip.AddrPort }); is && own.AddrPort().IsValid() {
		return own.AddrPort().Addr().Unmap().WithZone(""), true
	}
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return ip, false
	}
	return p.Addr().Unmap().WithZone(""), true
}

func addressOf(a net.Addr) string {
	if a == nil || a.String() == "" {
		return "without an address"
	}
	return a.String()
}

// secured is a connection that uses TLS itself, or over a connection with TLS.
type secured interface{ ConnectionState() tls.ConnectionState }
