package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Parse takes a target apart: etcd://127.0.0.1:2379/arith has one endpoint, the default prefix and
// the service arith; in etcd://h1:2379,h2:2379/prefix/deep/arith the prefix is /prefix/deep.
func Parse(u *url.URL) (endpoints []string, prefix, service string, err error) {
	fail := func(format string, args ...any) ([]string, string, string, error) {
		return nil, "", "", fmt.Errorf("target %q "+format, append([]any{u.Redacted()}, args...)...)
	}
	if u.Scheme != "etcd" {
		return fail("is not one of etcd: use etcd://host:2379/service")
	}
	if u.User != nil {
		return fail("has a user in it, which ends up in logs: use the option etcd.User")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return fail("has a query or fragment, which means nothing here: use options of etcd.Dial")
	}
	if u.Host == "" {
		return fail("has no endpoint: use etcd://host:2379/service")
	}
	for endpoint := range strings.SplitSeq(u.Host, ",") {
		if err := checkHostPort(endpoint); err != nil {
			return fail("has a bad endpoint: %w", err)
		}
		endpoints = append(endpoints, endpoint)
	}
	slash := strings.LastIndexByte(u.Path, '/')
	if slash < 0 || slash == len(u.Path)-1 {
		return fail("names no service: use etcd://host:2379/service")
	}
	prefix, service = strings.TrimRight(u.Path[:slash], "/"), u.Path[slash+1:]
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if strings.Contains(prefix, "//") {
		return fail("has an empty part in its prefix: leave out the second slash")
	}
	if err := registry.CheckService(service); err != nil {
		return fail("names a bad service: %w", err)
	}
	return endpoints, prefix, service, nil
}

func checkHostPort(endpoint string) error {
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("etcd endpoint %q is not host:port: use for example 127.0.0.1:2379", endpoint)
	}
	return nil
}

// checkEndpoints makes sure that every endpoint can be dialled, and that TLS means TLS everywhere:
// the etcd client takes the scheme of the first endpoint for all of them, and drops the TLS
// configuration for http without a word.
func checkEndpoints(endpoints []string, cfg *tls.Config) error {
	if len(endpoints) == 0 {
		return errors.New("no etcd endpoint: give one, for example 127.0.0.1:2379")
	}
	first := ""
	for i, endpoint := range endpoints {
		scheme, hostPort, ok := strings.Cut(endpoint, "://")
		if !ok {
			scheme, hostPort = "", endpoint
		}
		if scheme != "" && scheme != "http" && scheme != "https" {
			return fmt.Errorf("etcd endpoint %q has an unknown scheme: use host:port, http:// or https://", endpoint)
		}
		if err := checkHostPort(hostPort); err != nil {
			return err
		}
		if scheme == "http" && cfg != nil {
			return fmt.Errorf("etcd endpoint %q would go without the TLS that was asked for: use https", endpoint)
		}
		if i == 0 {
			first = scheme
		} else if scheme != first {
			return fmt.Errorf("etcd endpoints %q and %q differ in scheme: use one for all", endpoints[0], endpoint)
		}
	}
	return nil
}
