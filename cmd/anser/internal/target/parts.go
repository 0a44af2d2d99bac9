package target

import (
	"net/url"
	"strings"
)

// Servers returns the kind of a registry and the addresses of its servers, which accept
// connections; none for kinds without.
func Servers(registryURL string) (kind string, addresses []string, err error) {
	k, err := parseRegistry(registryURL)
	if err != nil {
		return "", nil, err
	}
	u, err := url.Parse(registryURL)
	if err != nil || !k.servers {
		return k.name, nil, err
	}
	return k.name, strings.Split(u.Host, ","), nil
}

// IsRegistry reports whether the text is the URL of a registry without a service in it: its servers
// and nothing after them.
func IsRegistry(typed string) bool {
	scheme, rest, ok := strings.Cut(typed, "://")
	k := kindOf(scheme)
	return ok && k != nil && k.servers && rest != "" && !strings.Contains(strings.TrimRight(rest, "/"), "/")
}

// Split splits the target of a service in a registry, as Resolve returns it, into the URL of the
// registry and the name of the service. It returns ok = false for a target with addresses.
func Split(full, registryURL string) (in, service string, ok bool) {
	scheme, rest, _ := strings.Cut(full, "://")
	if kindOf(scheme) == nil {
		return "", "", false
	}
	if before, _, templated := strings.Cut(registryURL, servicePlace); templated && strings.HasPrefix(full, before) {
		service = strings.TrimSuffix(strings.TrimPrefix(full, before), registryURL[len(before)+len(servicePlace):])
		return registryURL, service, true
	}
	if i := strings.LastIndexByte(rest, '/'); i >= 0 {
		return scheme + "://" + rest[:i], rest[i+1:], true
	}
	return "", "", false
}
