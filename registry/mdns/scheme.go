package mdns

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Scheme lets a client find its service on the local network. It is an option of anser.Dial:
//
//	c, err := anser.Dial("mdns:///arith", mdns.Scheme())
//
// The options are those of New.
func Scheme(opts ...Option) registry.Scheme {
	return registry.Scheme{Name: "mdns", Open: func(u *url.URL) (registry.Resolver, string, error) {
		service := strings.TrimPrefix(u.Path, "/")
		if u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, "", fmt.Errorf("target %q: there is no server to name: use mdns:///service", u.Redacted())
		}
		if err := registry.CheckService(service); err != nil {
			return nil, "", fmt.Errorf("target %q: %w", u.Redacted(), err)
		}
		r, err := New(opts...)
		if err != nil {
			return nil, "", err
		}
		return r, service, nil
	}}
}
