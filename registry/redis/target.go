package redis

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Parse takes a target apart: redis://127.0.0.1:6379/arith has one address, the default prefix and the
// service arith; in redis://h1:6379,h2:6379/shop/arith, a cluster, the prefix is shop.
func Parse(u *url.URL) (addresses []string, prefix, service string, err error) {
	fail := func(format string, args ...any) ([]string, string, string, error) {
		return nil, "", "", fmt.Errorf("target %q "+format, append([]any{u.Redacted()}, args...)...)
	}
	if u.Scheme != "redis" {
		return fail("is not one of redis: use redis://host:6379/service")
	}
	if u.User != nil {
		return fail("has a user in it, which ends up in logs: use the option redis.User")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return fail("has a query or fragment, which means nothing here: use options of redis.Dial")
	}
	addresses = strings.Split(u.Host, ",")
	if err := checkAddresses(addresses); err != nil {
		return fail("has a bad address: %w", err)
	}
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	prefix, service = DefaultPrefix, parts[len(parts)-1]
	if len(parts) > 2 {
		return fail("has %d parts in its path: use redis://host:6379/prefix/service", len(parts))
	}
	if len(parts) == 2 {
		prefix = parts[0]
	}
	if err := registry.CheckService(service); err != nil {
		return fail("names a bad service: %w", err)
	}
	return addresses, prefix, service, nil
}

func checkAddresses(addresses []string) error {
	if len(addresses) == 0 {
		return errors.New("no redis address: give one, for example 127.0.0.1:6379")
	}
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" || port == "" {
			return fmt.Errorf("redis address %q is not host:port: use for example 127.0.0.1:6379", address)
		}
	}
	return nil
}

// Scheme lets a client find its service in Redis. It is an option of anser.Dial:
//
//	c, err := anser.Dial("redis://127.0.0.1:6379/arith", redis.Scheme())
//
// [Parse] says what a target may look like. The options are those of Dial; the prefix is the target's. The
// connection to Redis is closed with the client.
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
