package etcd

import (
	"net/url"

	"github.com/anser-rpc/anser/registry"
)

// Scheme lets a client find its service in etcd. It is an option of anser.Dial:
//
//	c, err := anser.Dial("etcd://127.0.0.1:2379/arith", etcd.Scheme())
//
// [Parse] describes the form of a target. The options are those of Dial; the prefix comes from the
// target. The connection to etcd is closed with the client.
func Scheme(opts ...DialOption) registry.Scheme {
	return registry.Scheme{Name: "etcd", Open: func(u *url.URL) (registry.Resolver, string, error) {
		endpoints, prefix, service, err := Parse(u)
		if err != nil {
			return nil, "", err
		}
		all := append(append([]DialOption(nil), opts...), Prefix(prefix))
		r, err := Dial(endpoints, all...)
		if err != nil {
			return nil, "", err
		}
		return r, service, nil
	}}
}
