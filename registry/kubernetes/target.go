package kubernetes

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Parse splits a target: kubernetes:///shop/arith:grpc has the namespace shop, the service arith
// and the port grpc. Namespace and port are optional.
func Parse(u *url.URL) (namespace, service, port string, err error) {
	fail := func(format string, args ...any) (string, string, string, error) {
		return "", "", "", fmt.Errorf("target %q "+format, append([]any{u.Redacted()}, args...)...)
	}
	if u.Scheme != "kubernetes" {
		return fail("is not one of kubernetes: use kubernetes:///namespace/service:port")
	}
	if u.Host != "" || u.User != nil {
		return fail("names a host, but the cluster comes from the kubeconfig: use kubernetes:///namespace/service with three slashes")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return fail("has a query or fragment, which has no meaning here: use options of kubernetes.Dial")
	}
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	if len(parts) > 2 {
		return fail("has %d parts in its path: use kubernetes:///namespace/service:port", len(parts))
	}
	if len(parts) == 2 {
		if namespace = parts[0]; namespace == "" {
			return fail("has an empty namespace: use kubernetes:///namespace/service:port, or kubernetes:///service")
		}
	}
	service, port, named := strings.Cut(parts[len(parts)-1], ":")
	if named && port == "" {
		return fail("has an empty port: use kubernetes:///namespace/service:port")
	}
	if err := registry.CheckService(service); err != nil {
		return fail("names a bad service: %w", err)
	}
	return namespace, service, port, nil
}

// Scheme lets a client find its service in Kubernetes. It is an option of anser.Dial:
//
//	c, err := anser.Dial("kubernetes:///shop/arith:grpc", kubernetes.Scheme())
//
// [Parse] describes the form of a target. The options are those of Dial; namespace and port are
// the target's, if it has them.
func Scheme(opts ...Option) registry.Scheme {
	return registry.Scheme{Name: "kubernetes", Open: func(u *url.URL) (registry.Resolver, string, error) {
		namespace, service, port, err := Parse(u)
		if err != nil {
			return nil, "", err
		}
		all := slices.Clone(opts)
		if namespace != "" {
			all = append(all, Namespace(namespace))
		}
		if port != "" {
			all = append(all, Port(port))
		}
		r, err := Dial(all...)
		if err != nil {
			return nil, "", err
		}
		return r, service, nil
	}}
}
