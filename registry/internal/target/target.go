// Package target parses the targets of registries that run on servers:
// scheme://servers/prefix/service.
package target

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// Kind is a kind of registry, as its errors name it.
type Kind struct {
	Name   string // of the scheme and of the package
	Port   string // usual port of its servers
	Server string // "endpoint" or "address"
	Login  string // the option for a user's credentials
}

// Errorf returns an error about the target, with the password redacted.
func Errorf(u *url.URL, format string, args ...any) error {
	return fmt.Errorf("target %q "+format, append([]any{u.Redacted()}, args...)...)
}

// Example returns a target of this kind.
func (k Kind) Example() string { return k.Name + "://host:" + k.Port + "/service" }

// Check rejects parts that no target of this kind has, whatever its servers and its path are.
func (k Kind) Check(u *url.URL) error {
	switch {
	case u.Scheme != k.Name:
		return Errorf(u, "is not one of %s: use %s", k.Name, k.Example())
	case u.User != nil:
		return Errorf(u, "has a user in it, which would appear in logs: use the option %s.%s", k.Name, k.Login)
	case u.RawQuery != "" || u.Fragment != "":
		return Errorf(u, "has a query or fragment, which has no meaning here: use options of %s.Dial", k.Name)
	}
	return nil
}

// Servers returns the servers of a target, at least one.
func (k Kind) Servers(u *url.URL) ([]string, error) {
	servers := strings.Split(u.Host, ",")
	if err := k.CheckServers(servers); err != nil {
		return nil, Errorf(u, "has a bad %s: %w", k.Server, err)
	}
	return servers, nil
}

// CheckServers rejects a list that is empty or contains a server that is not host:port.
func (k Kind) CheckServers(servers []string) error {
	if len(servers) == 0 {
		return fmt.Errorf("no %s %s: give one, for example 127.0.0.1:%s", k.Name, k.Server, k.Port)
	}
	for _, server := range servers {
		if err := k.CheckServer(server); err != nil {
			return err
		}
	}
	return nil
}

// CheckServer rejects a server that is not host:port.
func (k Kind) CheckServer(server string) error {
	host, port, err := net.SplitHostPort(server)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("%s %s %q is not host:port: use for example 127.0.0.1:%s", k.Name, k.Server, server, k.Port)
	}
	return nil
}

// Path splits the path of a target into a prefix of any depth, which defaults to fallback, and the
// service. check validates the prefix.
func (k Kind) Path(u *url.URL, fallback string, check func(prefix string) error) (prefix, service string, err error) {
	slash := strings.LastIndexByte(u.Path, '/')
	if slash < 0 || slash == len(u.Path)-1 {
		return "", "", Errorf(u, "names no service: use %s", k.Example())
	}
	prefix, service = strings.TrimRight(u.Path[:slash], "/"), u.Path[slash+1:]
	if prefix == "" {
		prefix = fallback
	}
	if err := check(prefix); err != nil {
		return "", "", Errorf(u, "%w", err)
	}
	return prefix, service, checkService(u, service)
}

// Pair splits the path of a target into a scope, which defaults to fallback, and the service. kind
// is the registry's name for the scope.
func (k Kind) Pair(u *url.URL, kind, fallback string) (scope, service string, err error) {
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	scope, service = fallback, parts[len(parts)-1]
	if len(parts) > 2 {
		return "", "", Errorf(u, "has %d parts in its path: use %s://host:%s/%s/service", len(parts), k.Name, k.Port, kind)
	}
	if len(parts) == 2 {
		scope = parts[0]
	}
	return scope, service, checkService(u, service)
}

func checkService(u *url.URL, service string) error {
	if err := registry.CheckService(service); err != nil {
		return Errorf(u, "names a bad service: %w", err)
	}
	return nil
}
