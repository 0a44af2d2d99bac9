package zookeeper

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Parse takes a target apart: zookeeper://127.0.0.1:2181/arith has one endpoint, the default prefix and the
// service arith; in zookeeper://h1:2181,h2:2181/prefix/deep/arith the prefix is /prefix/deep.
func Parse(u *url.URL) (endpoints []string, prefix, service string, err error) {
	fail := func(format string, args ...any) ([]string, string, string, error) {
		return nil, "", "", fmt.Errorf("target %q "+format, append([]any{u.Redacted()}, args...)...)
	}
	if u.Scheme != "zookeeper" {
		return fail("is not one of zookeeper: use zookeeper://host:2181/service")
	}
	if u.User != nil {
		return fail("has a user in it, which ends up in logs: use the option zookeeper.Digest")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return fail("has a query or fragment, which means nothing here: use options of zookeeper.Dial")
	}
	if u.Host == "" {
		return fail("has no endpoint: use zookeeper://host:2181/service")
	}
	endpoints = strings.Split(u.Host, ",")
	if err := checkEndpoints(endpoints); err != nil {
		return fail("has a bad endpoint: %w", err)
	}
	slash := strings.LastIndexByte(u.Path, '/')
	if slash < 0 || slash == len(u.Path)-1 {
		return fail("names no service: use zookeeper://host:2181/service")
	}
	prefix, service = strings.TrimRight(u.Path[:slash], "/"), u.Path[slash+1:]
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if err := checkPrefix(prefix); err != nil {
		return fail("has a bad prefix: %w", err)
	}
	if err := registry.CheckService(service); err != nil {
		return fail("names a bad service: %w", err)
	}
	return endpoints, prefix, service, nil
}

func checkEndpoints(endpoints []string) error {
	if len(endpoints) == 0 {
		return errors.New("no zookeeper endpoint: give one, for example 127.0.0.1:2181")
	}
	for _, endpoint := range endpoints {
		host, port, err := net.SplitHostPort(endpoint)
		if err != nil || host == "" || port == "" {
			return fmt.Errorf("zookeeper endpoint %q is not host:port: use for example 127.0.0.1:2181", endpoint)
		}
	}
	return nil
}
