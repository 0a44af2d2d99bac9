// Package target understands how the commands are told where to go: an address, a target of
// anser.Dial, or the name of a service in a registry.
package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/consul"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/zookeeper"
	"github.com/anser-rpc/anser/transport/httpconnect"
	"github.com/anser-rpc/anser/transport/quic"
	"github.com/anser-rpc/anser/transport/websocket"
)

// RegistryVariable is the environment variable that replaces DefaultRegistry.
const RegistryVariable = "ANSER_REGISTRY"

// DefaultRegistry is where `anser demo` and `anser registry` serve unless they are told otherwise.
const DefaultRegistry = "etcd://127.0.0.1:2379"

// Registry returns the registry to use where no flag names one.
func Registry() string {
	if r := os.Getenv(RegistryVariable); r != "" {
		return r
	}
	return DefaultRegistry
}

// registries are the schemes of registries.
var registries = []string{"etcd", "zookeeper", "consul", "file"}

// schemes are those that Dial here knows.
var schemes = append([]string{"tcp", "tls", "unix", "http", "https", "ws", "wss", "quic"}, registries...)

// Resolve turns what a user typed into a target of anser.Dial: the name of a service is looked for
// in the registry, everything else is a target already.
func Resolve(typed, registryURL string) (string, error) {
	switch {
	case typed == "":
		return "", errors.New("the target is empty: use a service's name, host:port, or a target such as etcd://127.0.0.1:2379/arith")
	case strings.Contains(typed, "://"):
		scheme, _, _ := strings.Cut(typed, "://")
		if !slices.Contains(schemes, scheme) {
			return "", fmt.Errorf("target %q: unknown scheme %q: use %s", typed, scheme, strings.Join(schemes, ", "))
		}
		return typed, nil
	case strings.ContainsAny(typed, ":,/"):
		return typed, nil
	case typed == "localhost" || net.ParseIP(typed) != nil:
		return "", fmt.Errorf("target %q has no port: use host:port", typed)
	}
	if err := registry.CheckService(typed); err != nil {
		return "", err
	}
	if _, err := parseRegistry(registryURL); err != nil {
		return "", err
	}
	return strings.TrimRight(registryURL, "/") + "/" + typed, nil
}

// Dial returns a client for what a user typed. It says nothing on its own and leaves no file behind.
func Dial(typed, registryURL string, opts ...anser.DialOption) (*anser.Client, error) {
	full, err := Resolve(typed, registryURL)
	if err != nil {
		return nil, err
	}
	quiet := []anser.DialOption{
		anser.NoSnapshot(), anser.Logger(slog.New(slog.DiscardHandler)),
		httpconnect.HTTP(), httpconnect.HTTPS(), websocket.WS(), websocket.WSS(), quic.Transport(),
	}
	for _, name := range registries {
		quiet = append(quiet, Scheme(name))
	}
	return anser.Dial(full, append(quiet, opts...)...)
}

// Scheme is the scheme of a registry for anser.Dial.
func Scheme(name string) registry.Scheme {
	return registry.Scheme{Name: name, Open: func(u *url.URL) (registry.Resolver, string, error) {
		parent, service := path.Split(u.Path)
		if service == "" {
			return nil, "", fmt.Errorf("no service is named: use %s/service", strings.TrimRight(u.String(), "/"))
		}
		where := *u
		where.Path = strings.TrimRight(parent, "/")
		r, err := open(&where)
		return r, service, err
	}}
}

// Open opens a registry: etcd://host:port, zookeeper://host:port or consul://host:port, each with a prefix or
// without, or file:///path.
func Open(registryURL string) (registry.Registry, error) {
	u, err := parseRegistry(registryURL)
	if err != nil {
		return nil, err
	}
	r, err := open(u)
	if err != nil {
		return nil, fmt.Errorf("registry %q: %w", registryURL, err)
	}
	return r, nil
}

func parseRegistry(registryURL string) (*url.URL, error) {
	u, err := url.Parse(registryURL)
	switch {
	case err != nil || u.Scheme == "" || u.Host == "" && u.Path == "":
		return nil, fmt.Errorf("registry %q is not a URL: use %s or file:///path/services.json", registryURL, DefaultRegistry)
	case !slices.Contains(registries, u.Scheme):
		return nil, fmt.Errorf("registry %q: unknown scheme %q: use one of %s, for example %s",
			registryURL, u.Scheme, strings.Join(registries, ", "), DefaultRegistry)
	}
	return u, nil
}

func open(u *url.URL) (registry.Registry, error) {
	if u.Scheme == "file" {
		return registry.NewFile(u.Path)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("no server of %s is named: use for example %s", u.Scheme, DefaultRegistry)
	}
	hosts, prefix := strings.Split(u.Host, ","), strings.TrimRight(u.Path, "/")
	switch u.Scheme {
	case "zookeeper":
		return zookeeper.Dial(hosts, zookeeper.Prefix(cmp.Or(prefix, zookeeper.DefaultPrefix)))
	case "consul":
		return consul.Dial(u.Host, consul.Prefix(strings.TrimLeft(prefix, "/")))
	}
	return etcd.Dial(hosts, etcd.Prefix(cmp.Or(prefix, etcd.DefaultPrefix)))
}

// Reach finds out whether the registry behind a target or registry URL can be connected to, so that
// somebody who waits hears at once that it cannot: a Registry itself goes on trying.
func Reach(ctx context.Context, where string) error {
	u, err := url.Parse(where)
	if err != nil || u.Scheme == "file" || !slices.Contains(registries, u.Scheme) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var dialer net.Dialer
	for endpoint := range strings.SplitSeq(u.Host, ",") {
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, "tcp", endpoint); err == nil {
			conn.Close()
			return nil
		}
	}
	u.Path = ""
	return &UnreachableError{Registry: u.Redacted(), Cause: err}
}

// UnreachableError says that a registry cannot be reached.
type UnreachableError struct {
	Registry string
	Cause    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no registry answers at %s: start one with \"anser demo\" or \"anser registry\", "+
		"or name another with --registry\n%v", e.Registry, e.Cause)
}

func (e *UnreachableError) Unwrap() error { return e.Cause }

// Service is a service with its instances.
type Service struct {
	Name      string              `json:"name"`
	Instances []registry.Instance `json:"instances"`
}

// List returns the services of the registry with their instances, all or those that are named.
func List(ctx context.Context, r registry.Registry, names ...string) ([]Service, error) {
	known, err := r.Services(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = known
	}
	services := make([]Service, 0, len(names))
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, &UnknownServiceError{Name: name, Known: known}
		}
		instances, err := registry.List(ctx, r, name)
		if err != nil {
			return nil, err
		}
		services = append(services, Service{name, instances})
	}
	return services, nil
}

// UnknownServiceError says that a registry has no service of a name.
type UnknownServiceError struct {
	Name  string
	Known []string
}

func (e *UnknownServiceError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("there is no service %q: the registry is empty", e.Name)
	}
	return fmt.Sprintf("there is no service %q: the registry has %s", e.Name, strings.Join(e.Known, ", "))
}
