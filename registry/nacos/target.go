package nacos

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Parse takes a target apart: nacos://127.0.0.1:8848/arith has one address, the namespace "public", which is
// written as "", and the service arith; in nacos://h1:8848,h2:8848/team-a/arith the namespace is team-a.
func Parse(u *url.URL) (addresses []string, namespace, service string, err error) {
	fail := func(format string, args ...any) ([]string, string, string, error) {
		return nil, "", "", fmt.Errorf("target %q "+format, append([]any{u.Redacted()}, args...)...)
	}
	if u.Scheme != "nacos" {
		return fail("is not one of nacos: use nacos://host:8848/service")
	}
	if u.User != nil {
		return fail("has a user in it, which ends up in logs: use the option nacos.User")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return fail("has a query or fragment, which means nothing here: use options of nacos.Dial")
	}
	addresses = strings.Split(u.Host, ",")
	if err := checkAddresses(addresses); err != nil {
		return fail("has a bad address: %w", err)
	}
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	service = parts[len(parts)-1]
	if len(parts) > 2 {
		return fail("has %d parts in its path: use nacos://host:8848/namespace/service", len(parts))
	}
	if len(parts) == 2 {
		namespace = parts[0]
	}
	if err := registry.CheckService(service); err != nil {
		return fail("names a bad service: %w", err)
	}
	return addresses, namespace, service, nil
}

func checkAddresses(addresses []string) error {
	if len(addresses) == 0 {
		return errors.New("no nacos address: give one, for example 127.0.0.1:8848")
	}
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" || port == "" {
			return fmt.Errorf("nacos address %q is not host:port: use for example 127.0.0.1:8848", address)
		}
	}
	return nil
}

// Scheme lets a client find its service in Nacos. It is an option of anser.Dial:
//
//	c, err := anser.Dial("nacos://127.0.0.1:8848/arith", nacos.Scheme())
//
// [Parse] says what a target may look like. The options are those of Dial; the namespace is the target's.
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
