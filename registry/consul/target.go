package consul

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/target"
)

var targets = target.Kind{Name: "consul", Port: "8500", Server: "endpoint", Login: "Token"}

// Parse splits a target: consul://127.0.0.1:8500/arith has no prefix and the service arith;
// consul://127.0.0.1:8500/shop-/arith has the prefix shop-.
func Parse(u *url.URL) (endpoint, prefix, service string, err error) {
	if err := targets.Check(u); err != nil {
		return "", "", "", err
	}
	if err := checkEndpoint(u.Host); err != nil {
		return "", "", "", target.Errorf(u, "has a bad endpoint: %w", err)
	}
	prefix, service, err = targets.Path(u, "", func(path string) error {
		if prefix := strings.Trim(path, "/"); prefix != "" {
			if err := registry.CheckService(prefix); err != nil {
				return fmt.Errorf("has a bad prefix: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return "", "", "", err
	}
	return u.Host, strings.Trim(prefix, "/"), service, nil
}

func checkEndpoint(endpoint string) error {
	if strings.Contains(endpoint, ",") {
		return fmt.Errorf("consul endpoint %q is more than one: use the agent of this host, which knows the others", endpoint)
	}
	return targets.CheckServer(endpoint)
}
