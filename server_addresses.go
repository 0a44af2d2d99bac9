package anser

import (
	"net"
	"net/netip"
)

// addressRules restrict the addresses from which clients may connect. Without rules all are
// allowed.
type addressRules struct {
	allowed, denied []netip.Prefix
}

// AllowFrom makes the server close connections from addresses that are in none of the prefixes,
// before it reads anything from them; several options add up. Prefixes apply to IP only: other
// connections, such as those over unix sockets, are accepted. IPv6 prefixes do not apply to IPv4,
// except within ::ffff:0:0/96. [Server.SetAddresses] changes the prefixes while the server serves.
func AllowFrom(prefixes ...netip.Prefix) ServerOption {
	return serverOption(func(o *serverOptions) {
		o.addresses.allowed = append(o.addresses.allowed, o.prefixes("anser.AllowFrom", prefixes)...)
	})
}

// DenyFrom makes the server close connections from addresses in the prefixes, even if [AllowFrom]
// would accept them.
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

// SetAddresses replaces the prefixes of [AllowFrom] and [DenyFrom] for new connections; existing
// ones are not affected. Without allowed prefixes all addresses that are not denied are accepted.
// The slices are kept: do not change them afterwards.
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
		// A prefix such as ::ffff:10.0.0.0/104 applies to IPv4, too.
		if p.Contains(a) || a.Is4() && p.Addr().Is4In6() && p.Contains(netip.AddrFrom16(a.As16())) {
			return true
		}
	}
	return false
}
