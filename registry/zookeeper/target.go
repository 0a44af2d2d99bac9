package zookeeper

import (
	"fmt"
	"net/url"

	"github.com/anser-rpc/anser/registry/internal/target"
)

var targets = target.Kind{Name: "zookeeper", Port: "2181", Server: "endpoint", Login: "Digest"}

// Parse splits a target: zookeeper://127.0.0.1:2181/arith has one endpoint, the default prefix and
// the service arith; zookeeper://h1:2181,h2:2181/prefix/deep/arith has the prefix /prefix/deep.
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
		if err := checkPrefix(prefix); err != nil {
			return fmt.Errorf("has a bad prefix: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, "", "", err
	}
	return endpoints, prefix, service, nil
}
