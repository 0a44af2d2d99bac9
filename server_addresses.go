package anser

import (
	"net"
	"net/netip"
)

// addressRules say from which addresses clients may connect. Without rules they may from all.
type addressRules struct {
	allowed, denied []netip.Prefix
}

// AllowFrom has the server close connections from addresses that are in none of the prefixes, before anything is
// read of them; several options add up. Prefixes are about IP: other connections, such as those over unix
// sockets, are let in. Those of IPv6 are not about IPv4, except within ::ffff:0:0/96. [Server.SetAddresses] changes them while the server serves.
func AllowFrom(prefixes ...netip.Prefix) ServerOption {
	return serverOption(func(o *serverOptions) {
		o.addresses.allowed = append(o.addresses.allowed, o.prefixes("anser.AllowFrom", prefixes)...)
	})
}

// DenyFrom has the server close connections from addresses in the prefixes, also where [AllowFrom] would let them
// in.
func DenyFrom(prefixes ...netip.Prefix) ServerOption {
	return serverOption(func(o *serverOptions) {
		o.addresses.denied = append(o.addresses.denied, o.prefixes("anser.DenyFrom", prefixes)...)
	})
}

func (o *serverOptions) prefixes(option string, list []netip.Prefix) []netip.Prefix {
	o.wants(len(list) > 0, "%s without a prefix: name one, or leave the option out", option)
	for _, p := range list {
		o.wants(p.IsValid(), "%s: a prefix is not valid: make it with netip.ParsePrefix, as in \"10.0.0.0/8\"", option)
	}
	return list
}

// SetAddresses takes the place of what [AllowFrom] and [DenyFrom] say, for new connections; those that stand go
// on. Without allowed prefixes all addresses are let in that are not denied. It keeps the slices.
func (s *Server) SetAddresses(allowed, denied []netip.Prefix) {
	if s.usable() != nil {
		return
	}
	s.addresses.Store(&addressRules{allowed, denied})
}

// allow reports whether a client may connect from the address.
func (r *addressRules) allow(a net.Addr) bool {
	if len(r.allowed)+len(r.denied) == 0 {
		return true
	}
	from, ok := ipOf(a)
	if !ok {
		return true
	}
	return !contains(r.denied, from) && (len(r.allowed) == 0 || contains(r.allowed, from))
}

func contains(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		// A prefix such as ::ffff:10.0.0.0/104 is about IPv4, too.
		if p.Contains(a) || a.Is4() && p.Addr().Is4In6() && p.Contains(netip.AddrFrom16(a.As16())) {
			return true
		}
	}
	return false
}
