package consul

import (
	"net/url"

	"github.com/anser-rpc/anser/registry"
)

// Scheme lets a client find its service in Consul. It is an option of anser.Dial:
//
//	c, err := anser.Dial("consul://127.0.0.1:8500/arith", consul.Scheme())
//
// [Parse] describes the form of a target. The options are those of Dial; the prefix comes from the
// target. The connections to Consul are closed with the client.
func Scheme(opts ...Option) registry.Scheme {
	return registry.Scheme{Name: "consul", Open: func(u *url.URL) (registry.Resolver, string, error) {
		endpoint, prefix, service, err := Parse(u)
		if err != nil {
			return nil, "", err
		}
		all := append([]Option(nil), opts...)
		if prefix != "" {
			all = append(all, Prefix(prefix))
		}
		r, err := Dial(endpoint, all...)
		if err != nil {
			return nil, "", err
		}
		return r, service, nil
	}}
}
