package consul

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Parse takes a target apart: consul://127.0.0.1:8500/arith has no prefix and the service arith; in
// consul://127.0.0.1:8500/shop-/arith the prefix is shop-.
func Parse(u *url.URL) (endpoint, prefix, service string, err error) {
	fail := func(format string, args ...any) (string, string, string, error) {
		return "", "", "", fmt.Errorf("target %q "+format, append([]any{u.Redacted()}, args...)...)
	}
	if u.Scheme != "consul" {
		return fail("is not one of consul: use consul://host:8500/service")
	}
	if u.User != nil {
		return fail("has a user in it, which ends up in logs: use the option consul.Token")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return fail("has a query or fragment, which means nothing here: use options of consul.Dial")
	}
	if err := checkEndpoint(u.Host); err != nil {
		return fail("has a bad endpoint: %w", err)
	}
	slash := strings.LastIndexByte(u.Path, '/')
	if slash < 0 || slash == len(u.Path)-1 {
		return fail("names no service: use consul://host:8500/service")
	}
	prefix, service = strings.Trim(u.Path[:slash], "/"), u.Path[slash+1:]
	if prefix != "" {
		if err := registry.CheckService(prefix); err != nil {
			return fail("has a bad prefix: %w", err)
		}
	}
	if err := registry.CheckService(service); err != nil {
		return fail("names a bad service: %w", err)
	}
	return u.Host, prefix, service, nil
}

func checkEndpoint(endpoint string) error {
	if strings.Contains(endpoint, ",") {
		return fmt.Errorf("consul endpoint %q is more than one: use the agent of this host, which knows the others", endpoint)
	}
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("consul endpoint %q is not host:port: use for example 127.0.0.1:8500", endpoint)
	}
	return nil
}
