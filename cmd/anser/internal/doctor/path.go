package doctor

import "net"

// leastMTU is what every network of IPv6 carries, and QUIC needs.
const leastMTU = 1280

// measure looks at the way to the server.
func (p *probe) measure(nc net.Conn) {
	if n := pathMTU(nc); n > 0 && n < leastMTU {
		p.add("mtu", Warn, "raise the MTU of the interfaces on the way, of a VPN for example: QUIC does not work over it, and IPv6 neither",
			"packets to %s have at most %d bytes", nc.RemoteAddr(), n)
	}
}
