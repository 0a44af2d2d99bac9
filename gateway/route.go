package gateway

import (
	"cmp"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
)

// ask is a request, as routes see it.
type ask struct {
	host, path string
	header     func(name string) (value string, ok bool)
}

// matches reports whether the route is for the request.
func (r *Route) matches(a *ask) bool {
	if r.Host != "" && !hostMatches(r.Host, a.host) || r.Path != "" && !hasPrefix(a.path, r.Path) {
		return false
	}
	for name, want := range r.Headers {
		if value, ok := a.header(name); !ok || want != "*" && value != want {
			return false
		}
	}
	return true
}

// hostMatches reports whether a host, which may have a port, is that of a route.
func hostMatches(want, host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if below, ok := strings.CutPrefix(want, "*"); ok {
		return strings.HasSuffix(host, below) && len(host) > len(below)
	}
	return host == want
}

// hasHost reports whether a host is one of the gateway's own.
func (c *Config) hasHost(host string) bool {
	return slices.ContainsFunc(c.Hosts, func(own string) bool { return hostMatches(own, host) }) ||
		slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Host != "" && hostMatches(r.Host, host) })
}

// hasPrefix reports whether a path begins with another one, up to a slash or its end.
func hasPrefix(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(prefix, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// covers reports whether the route matches all requests that the other one matches.
func (r *Route) covers(other *Route) bool {
	switch {
	case r.Host == "" || r.Host == other.Host:
	case strings.HasPrefix(r.Host, "*") && other.Host != "" && strings.HasSuffix(other.Host, r.Host[1:]):
	default:
		return false
	}
	if r.Path != "" && (other.Path == "" || !hasPrefix(other.Path, r.Path)) {
		return false
	}
	for name, want := range r.Headers {
		if value, ok := other.Headers[name]; !ok || want != "*" && value != want {
			return false
		}
	}
	return true
}

// weight returns the share of the destination.
func (d *Destination) weight() int {
	if d.Weight == nil {
		return 1
	}
	return *d.Weight
}

// pick returns one of the destinations by their weights, or nil if there is none that fits.
func (r *Route) pick(fits func(d *Destination) bool) *Destination {
	sum := 0
	for i := range r.To {
		if fits(&r.To[i]) {
			sum += r.To[i].weight()
		}
	}
	if sum == 0 {
		return nil
	}
	n := rand.IntN(sum)
	for i := range r.To {
		if d := &r.To[i]; fits(d) {
			if n -= d.weight(); n < 0 {
				return d
			}
		}
	}
	return nil
}

// stripped returns the path without that of the route.
func (r *Route) stripped(path string) string {
	if !r.Strip {
		return path
	}
	return cmp.Or(strings.TrimPrefix(path, strings.TrimSuffix(r.Path, "/")), "/")
}

// strippedRaw is stripped for a path in which bytes may be escaped.
func (r *Route) strippedRaw(raw string) string {
	if !r.Strip || raw == "" {
		return raw
	}
	for range len(strings.TrimSuffix(r.Path, "/")) {
		if raw[0] == '%' {
			raw = raw[2:]
		}
		raw = raw[1:]
	}
	return cmp.Or(raw, "/")
}

// find returns the route for a request, or nil.
func (c *Config) find(a *ask) *Route {
	for i := range c.Routes {
		if c.Routes[i].matches(a) {
			return &c.Routes[i]
		}
	}
	return nil
}
