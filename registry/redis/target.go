package redis

import (
	"net/url"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/target"
)

var targets = target.Kind{Name: "redis", Port: "6379", Server: "address", Login: "User"}

// Parse splits a target: redis://127.0.0.1:6379/arith has one address, the default prefix and the
// service arith; redis://h1:6379,h2:6379/shop/arith is a cluster with the prefix shop.
func Parse(u *url.URL) (addresses []string, prefix, service string, err error) {
	if err := targets.Check(u); err != nil {
		return nil, "", "", err
	}
	if addresses, err = targets.Servers(u); err != nil {
		return nil, "", "", err
	}
	if prefix, service, err = targets.Pair(u, "prefix", DefaultPrefix); err != nil {
		return nil, "", "", err
	}
	return addresses, prefix, service, nil
}

// Scheme lets a client find its service in Redis. It is an option of anser.Dial:
//
//	c, err := anser.Dial("redis://127.0.0.1:6379/arith", redis.Scheme())
//
// [Parse] describes the form of a target. The options are those of Dial; the prefix comes from the
// target. The connection to Redis is closed with the client.
func Scheme(opts ...DialOption) registry.Scheme {
	return registry.Scheme{Name: "redis", Open: func(u *url.URL) (registry.Resolver, string, error) {
		addresses, prefix, service, err := Parse(u)
		if err != nil {
			return nil, "", err
		}
		all := append(append([]DialOption(nil), opts...), Prefix(prefix))
		r, err := Dial(addresses, all...)
		if err != nil {
			return nil, "", err
		}
		return r, service, nil
	}}
}
