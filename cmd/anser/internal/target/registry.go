package target

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/consul"
	"github.com/anser-rpc/anser/registry/dns"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/mdns"
	"github.com/anser-rpc/anser/registry/nacos"
	"github.com/anser-rpc/anser/registry/redis"
	"github.com/anser-rpc/anser/registry/zookeeper"
)

// kind is a kind of registry. Its URL is a target of anser.Dial without the service at its end, or
// with servicePlace in place of the service.
type kind struct {
	name    string
	scheme  func(Access) registry.Scheme
	example string // a URL
	servers bool   // its host part lists servers that accept connections
	keeps   bool   // supports documents, such as traffic rules
	named   bool   // its resolver serves a single service

	tls, user, token bool // supported parts of Access
	nameless         bool // supports a password without a user
}

var kinds = []kind{
	{
		name: "etcd", example: DefaultRegistry, servers: true, keeps: true, tls: true, user: true,
		scheme: func(a Access) registry.Scheme {
			return etcd.Scheme(given(a.TLS != nil, etcd.TLS(a.TLS), a.User != "", etcd.User(a.User, a.Password))...)
		},
	},
	{
		name: "zookeeper", example: "zookeeper://127.0.0.1:2181", servers: true, keeps: true, tls: true, user: true,
		scheme: func(a Access) registry.Scheme {
			return zookeeper.Scheme(given(a.TLS != nil, zookeeper.TLS(a.TLS), a.User != "", zookeeper.Digest(a.User, a.Password))...)
		},
	},
	{
		name: "consul", example: "consul://127.0.0.1:8500", servers: true, keeps: true, tls: true, token: true,
		scheme: func(a Access) registry.Scheme {
			return consul.Scheme(given(a.TLS != nil, consul.TLS(a.TLS), a.Token != "", consul.Token(a.Token))...)
		},
	},
	{
		name: "redis", example: "redis://127.0.0.1:6379", servers: true, keeps: true, tls: true, user: true, nameless: true,
		scheme: func(a Access) registry.Scheme {
			return redis.Scheme(given(a.TLS != nil, redis.TLS(a.TLS), a.Password != "", redis.User(a.User, a.Password))...)
		},
	},
	{
		name: "nacos", example: "nacos://127.0.0.1:8848", servers: true, tls: true, user: true,
		scheme: func(a Access) registry.Scheme {
			return nacos.Scheme(given(a.TLS != nil, nacos.TLS(a.TLS), a.User != "", nacos.User(a.User, a.Password))...)
		},
	},
	{
		name: "dns", example: "dns:///" + servicePlace + ".example.org:8972", named: true,
		scheme: func(Access) registry.Scheme { return dns.Scheme() },
	},
	{name: "mdns", example: "mdns:///", scheme: func(Access) registry.Scheme { return mdns.Scheme() }},
	{name: "file", example: "file:///path/services.json", keeps: true, scheme: func(Access) registry.Scheme { return registry.FileScheme() }},
}

// given returns the options whose conditions are true.
func given[O any](first bool, a O, second bool, b O) (opts []O) {
	if first {
		opts = append(opts, a)
	}
	if second {
		opts = append(opts, b)
	}
	return opts
}

// servicePlace is replaced by the service in the URL of a registry.
const servicePlace = "{service}"

func kindOf(scheme string) *kind {
	for i := range kinds {
		if kinds[i].name == scheme {
			return &kinds[i]
		}
	}
	return nil
}

// schemes returns the names of all kinds of registries.
func schemes() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// elsewhere returns advice for a registry that the command does not support.
func elsewhere(scheme string) string {
	if scheme != "kubernetes" {
		return ""
	}
	return "; inside a cluster a Service has a name, as in dns:///arith.shop.svc.cluster.local:8972, and from outside" +
		" \"kubectl port-forward\" leads to a pod"
}

// at returns the target of a service in a registry.
func at(registryURL, service string) string {
	if strings.Contains(registryURL, servicePlace) {
		return strings.ReplaceAll(registryURL, servicePlace, service)
	}
	scheme, rest, _ := strings.Cut(registryURL, "://")
	return scheme + "://" + strings.TrimRight(rest, "/") + "/" + service
}

// parseRegistry returns the kind of registry of a URL.
func parseRegistry(registryURL string) (*kind, error) {
	u, err := url.Parse(registryURL)
	if err != nil || !strings.Contains(registryURL, "://") {
		return nil, fmt.Errorf("registry %q is not a URL: use %s or file:///path/services.json", registryURL, DefaultRegistry)
	}
	k := kindOf(u.Scheme)
	switch {
	case k == nil:
		return nil, fmt.Errorf("registry %q: unknown scheme %q: use one of %s, for example %s%s",
			registryURL, u.Scheme, strings.Join(schemes(), ", "), DefaultRegistry, elsewhere(u.Scheme))
	case k.servers && u.Host == "":
		return nil, fmt.Errorf("registry %q names no server: use for example %s", registryURL, k.example)
	}
	return k, checkURL("registry", registryURL)
}

// checkURL rejects URLs that the registries reject, too, whose advice is for programs and not for
// users. what names the kind of the text.
func checkURL(what, text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("%s %q is not a URL: %w", what, text, err)
	case u.User != nil:
		return fmt.Errorf("%s %q has a user in it, which would appear in logs: use --registry-user and $%s", what, u.Redacted(), PasswordVariable)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s %q has a query or fragment, which has no meaning here: leave it out", what, text)
	}
	return nil
}

// Registry is a registry named by a user. Its methods are safe for concurrent use.
type Registry struct {
	registry.Resolver
	url    string
	kind   *kind
	scheme registry.Scheme
}

// Open opens a registry, without waiting for it.
func Open(source Source) (*Registry, error) {
	k, err := parseRegistry(source.URL)
	if err != nil {
		return nil, err
	}
	if err := k.check(source.Access); err != nil {
		return nil, err
	}
	r := &Registry{url: source.URL, kind: k, scheme: k.scheme(source.Access)}
	if k.named {
		r.Resolver = named{r}
	} else if r.Resolver, _, err = r.open("service"); err != nil {
		return nil, fmt.Errorf("registry %q: %w", source.URL, err)
	}
	return r, nil
}

// open returns a resolver for the service, and the service's name in it.
func (r *Registry) open(service string) (registry.Resolver, string, error) {
	u, err := url.Parse(at(r.url, service))
	if err != nil {
		return nil, "", err
	}
	return r.scheme.Open(u)
}

// CanList reports whether the registry can list its services.
func (r *Registry) CanList() bool {
	_, ok := r.Resolver.(registry.Lister)
	return ok
}

// Services returns the names of the services, sorted.
func (r *Registry) Services(ctx context.Context) ([]string, error) {
	l, ok := r.Resolver.(registry.Lister)
	if !ok {
		return nil, fmt.Errorf("%s cannot list services: name one", r.url)
	}
	return l.Services(ctx)
}

// Store returns the registry as a registry.Store, if it supports documents.
func (r *Registry) Store() (registry.Store, error) {
	if store, ok := r.Resolver.(registry.Store); ok {
		return store, nil
	}
	var keep []string
	for _, k := range kinds {
		if k.keeps {
			keep = append(keep, k.name)
		}
	}
	return nil, fmt.Errorf("the registry %s supports no rules: those of %s do", r.url, strings.Join(keep, ", "))
}

// Close closes the registry.
func (r *Registry) Close() error {
	if c, ok := r.Resolver.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// named uses a resolver per service.
type named struct{ registry *Registry }

// Watch implements registry.Resolver.
func (n named) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	r, name, err := n.registry.open(service)
	if err != nil {
		return err
	}
	if c, ok := r.(io.Closer); ok {
		defer c.Close()
	}
	return r.Watch(ctx, name, update, trouble)
}

// Service is a service with its instances.
type Service struct {
	Name      string              `json:"name"`
	Instances []registry.Instance `json:"instances"`
}

// List returns the services with their instances, either all or the named ones. A registry that
// cannot list its services returns the named ones.
func (r *Registry) List(ctx context.Context, names ...string) ([]Service, error) {
	known := names
	if r.CanList() || len(names) == 0 {
		var err error
		if known, err = r.Services(ctx); err != nil {
			return nil, err
		}
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
		services = append(services, Service{name, append([]registry.Instance{}, instances...)}) // not null in JSON
	}
	return services, nil
}

// UnknownServiceError means that a registry has no service of that name.
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
