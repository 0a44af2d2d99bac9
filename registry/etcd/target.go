package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/anser-rpc/anser/registry/internal/target"
)

var targets = target.Kind{Name: "etcd", Port: "2379", Server: "endpoint", Login: "User"}

// Parse splits a target: etcd://127.0.0.1:2379/arith has one endpoint, the default prefix and the
// service arith; etcd://h1:2379,h2:2379/prefix/deep/arith has the prefix /prefix/deep.
func Parse(u *url.URL) (endpoints []string, prefix, service string, err error) {
	if err := targets.Check(u); err != nil {
		return nil, "", "", err
	}
	if u.Host == "" {
		return nil, "", "", target.Errorf(u, "has no endpoint: use %s", targets.Example())
	}
	if endpoints, err = targets.Servers(u); err != nil {
		return nil, "", "", err
	}
	prefix, service, err = targets.Path(u, DefaultPrefix, func(prefix string) error {
		if strings.Contains(prefix, "//") {
			return errors.New("has an empty part in its prefix: leave out the second slash")
		}
		return nil
	})
	if err != nil {
		return nil, "", "", err
	}
	return endpoints, prefix, service, nil
}

// checkEndpoints makes sure that every endpoint can be dialled, and that TLS means TLS everywhere:
// the etcd client takes the scheme of the first endpoint for all of them, and silently ignores the
// TLS configuration for http.
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
		if err := targets.CheckServer(hostPort); err != nil {
			return err
		}
		if scheme == "http" && cfg != nil {
			return fmt.Errorf("etcd endpoint %q would ignore the TLS configuration: use https", endpoint)
		}
		if i == 0 {
			first = scheme
		} else if scheme != first {
			return fmt.Errorf("etcd endpoints %q and %q differ in scheme: use one for all", endpoints[0], endpoint)
		}
	}
	return nil
}
