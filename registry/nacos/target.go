package nacos

import (
	"net/url"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/target"
)

var targets = target.Kind{Name: "nacos", Port: "8848", Server: "address", Login: "User"}

// Parse splits a target: nacos://127.0.0.1:8848/arith has one address, the namespace "public",
// which is returned as "", and the service arith; nacos://h1:8848,h2:8848/team-a/arith has the
// namespace team-a.
func Parse(u *url.URL) (addresses []string, namespace, service string, err error) {
	if err := targets.Check(u); err != nil {
		return nil, "", "", err
	}
	if addresses, err = targets.Servers(u); err != nil {
		return nil, "", "", err
	}
	if namespace, service, err = targets.Pair(u, "namespace", ""); err != nil {
		return nil, "", "", err
	}
	return addresses, namespace, service, nil
}

// Scheme lets a client find its service in Nacos. It is an option of anser.Dial:
//
//	c, err := anser.Dial("nacos://127.0.0.1:8848/arith", nacos.Scheme())
//
// [Parse] describes the form of a target. The options are those of Dial; the namespace comes from
// the target.
func Scheme(opts ...Option) registry.Scheme {
	return registry.Scheme{Name: "nacos", Open: func(u *url.URL) (registry.Resolver, string, error) {
		addresses, namespace, service, err := Parse(u)
		if err != nil {
			return nil, "", err
		}
		all := append(append([]Option(nil), opts...), Namespace(namespace))
		r, err := Dial(addresses, all...)
		if err != nil {
			return nil, "", err
		}
		return r, service, nil
	}}
}
