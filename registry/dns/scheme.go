package dns

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Scheme lets a client find its service in the DNS. It is an option of anser.Dial:
//
//	c, err := anser.Dial("dns:///arith.shop.internal:8972", dns.Scheme())          // A and AAAA
//	c, err := anser.Dial("dns:///_arith._tcp.shop.internal", dns.Scheme())         // SRV
//	c, err := anser.Dial("dns://10.0.0.53,10.0.1.53/arith.shop.internal:8972", dns.Scheme())
//
// The options are those of New; servers in the target replace those of the option.
func Scheme(opts ...Option) registry.Scheme {
	return registry.Scheme{Name: "dns", Open: func(u *url.URL) (registry.Resolver, string, error) {
		servers, name, err := Parse(u)
		if err != nil {
			return nil, "", err
		}
		all := slices.Clone(opts)
		if len(servers) > 0 {
			all = append(all, func(r *Resolver) error {
				r.client.servers = nil
				return Servers(servers...)(r)
			})
		}
		r, err := New(name, all...)
		if err != nil {
			return nil, "", err
		}
		return r, strings.TrimSuffix(r.pattern.host, "."), nil
	}}
}

// Parse splits a target: dns://10.0.0.53/arith.shop.internal:8972 has one server and the name
// arith.shop.internal:8972; dns:///_arith._tcp.shop.internal names no server.
func Parse(u *url.URL) (servers []string, name string, err error) {
	fail := func(format string, args ...any) ([]string, string, error) {
		return nil, "", fmt.Errorf("target %q "+format, append([]any{u.Redacted()}, args...)...)
	}
	name = strings.TrimPrefix(u.Path, "/")
	switch {
	case u.Scheme != "dns":
		return fail("is not one of the DNS: use dns:///host:port")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fail("has a user, query or fragment, which have no meaning here: use options of dns.New")
	case name == "" && u.Host != "":
		return fail("has two slashes, so that %q is a DNS server: use dns:///%s, or dns://server/host:port", u.Host, u.Host)
	case name == "":
		return fail("has no name: use dns:///host:port, or dns:///_service._tcp.example.com")
	case strings.Contains(name, placeholder):
		return fail("has a %s in it, which is for dns.New", placeholder)
	}
	if _, err := parsePattern(name); err != nil {
		return fail("cannot be looked up: %w", err)
	}
	if u.Host != "" {
		servers = strings.Split(u.Host, ",")
	}
	for _, s := range servers {
		if _, err := serverAddress(s); err != nil {
			return fail("names a bad server: %w", err)
		}
	}
	return servers, name, nil
}
