// Package kubernetes is a registry in the Kubernetes API. It finds the pods that a Service selects
// by its EndpointSlices, with zones and readiness; the servers need no change for this. It also
// announces instances as EndpointSlices of its own, for servers that no Service selects.
//
// Announced instances are kept alive by a Lease, one per Registry. Documents are ConfigMaps.
package kubernetes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// DefaultTTL is the TTL unless the option TTL sets another.
const DefaultTTL = 30 * time.Second

// PortName is the port name of the EndpointSlices that a Registry writes, and the preferred one to
// read if no option names another.
const PortName = "anser"

// Registry announces and finds instances in one namespace of Kubernetes, and keeps documents
// there. All methods are safe for concurrent use.
type Registry struct {
	client    *client
	namespace string
	port      string
	ttl       time.Duration
	owner     string // marks the records announced by this registry; the name of its Lease
	leases    leases
	announcer *upkeep.Announcer
	life      *upkeep.Life
	closing   sync.Once
}

var _ registry.Store = (*Registry)(nil)

// Dial returns a registry in the cluster that the process runs in or, outside of one, in the
// cluster that kubectl would use: KUBECONFIG or ~/.kube/config set the cluster and the user. It
// does not wait for the API server.
func Dial(opts ...Option) (*Registry, error) {
	cfg := config{ttl: DefaultTTL, log: slog.New(slog.DiscardHandler)}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("kubernetes.Dial: an option is nil")
		}
		opt(&cfg)
	}
	if cfg.ttl < time.Second {
		return nil, fmt.Errorf("kubernetes lease of %v is too short: use 1s or more", cfg.ttl)
	}
	api, namespace, err := cfg.load()
	if err != nil {
		return nil, err
	}
	if cfg.namespace == "" {
		cfg.namespace = namespace
	}
	client, err := newClient(api, cfg.namespace)
	if err != nil {
		return nil, err
	}
	return newRegistry(client, cfg), nil
}

func newRegistry(client *client, cfg config) *Registry {
	r := &Registry{
		client: client, namespace: cfg.namespace, port: cfg.port, ttl: cfg.ttl,
		owner: "anser-" + strings.ToLower(rand.Text()), life: upkeep.NewLife(),
	}
	r.announcer = upkeep.NewAnnouncer(&backend{registry: r}, upkeep.Renewal(cfg.ttl), cfg.log)
	return r
}

// Register implements registry.Registrar. An EndpointSlice has an IP address and a port, so an
// instance with another kind of address is rejected. If the API server rejects it, for example for
// lack of permission, Register fails at once.
func (r *Registry) Register(ctx context.Context, in registry.Instance) error {
	if err := in.Validate(); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(in.Address)
	ip, notIP := netip.ParseAddr(host)
	if err != nil || notIP != nil || strings.Contains(in.Address, "://") {
		return fmt.Errorf("kubernetes keeps an IP address and a port, and cannot have the address %q: register a host:port whose host is an IP address", in.Address)
	}
	if ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.Zone() != "" {
		return fmt.Errorf("kubernetes rejects the address %q, which is loopback, link-local or multicast: register one that other hosts can dial", in.Address)
	}
	if !isLabel(in.Service) {
		return fmt.Errorf("service %q cannot be a label of kubernetes: use at most 63 letters, digits, dots, dashes and underscores, with a letter or digit at both ends", in.Service)
	}
	return r.announcer.Register(ctx, in)
}

// Deregister implements registry.Registrar. If ctx ends first, the instance is removed as soon as
// the API server can be reached.
func (r *Registry) Deregister(ctx context.Context, in registry.Instance) error {
	return r.announcer.Deregister(ctx, in)
}

// Close implements registry.Registry. It withdraws the announced instances, for which it allows a
// few seconds if the API server does not answer, and ten if it does; if that fails, it returns an
// error, and the Lease expires.
func (r *Registry) Close() (err error) {
	r.closing.Do(func() {
		err = r.announcer.Close()
		r.life.End()
		r.client.close()
	})
	return err
}

// config holds the settings made by options.
type config struct {
	namespace, port     string
	ttl                 time.Duration
	log                 *slog.Logger
	api                 *rest.Config
	kubeconfig, context string
}

// load returns the configuration of the API client, and its current namespace.
func (c *config) load() (*rest.Config, string, error) {
	if c.api != nil {
		return c.api, "default", nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules() // falls back to the configuration inside a cluster
	if c.kubeconfig != "" {
		rules.ExplicitPath = c.kubeconfig
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.context})
	api, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("no cluster of kubernetes is configured: run inside one, set KUBECONFIG, or use the option kubernetes.Config: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("namespace of kubernetes: %w", err)
	}
	return api, namespace, nil
}

// Option configures Dial.
type Option func(*config)

// Namespace sets the namespace of all objects. By default it is the one that the process runs in
// or that kubectl would use, and "default" with the option Config.
func Namespace(name string) Option { return func(c *config) { c.namespace = name } }

// Port sets the name of the Service port that clients call. By default it is the one named
// PortName, or the only one. It has no effect on instances announced by a Registry.
func Port(name string) Option { return func(c *config) { c.port = name } }

// TTL sets after how long without renewal instances are removed, DefaultTTL by default. It is
// rounded up to whole seconds.
func TTL(d time.Duration) Option { return func(c *config) { c.ttl = d } }

// Logger sets the logger for lost and restored connections to the API server; by default nothing
// is logged.
func Logger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// Config sets the API server and the credentials; by default Dial finds them. Its rate limits and
// its Timeout are ignored.
func Config(api *rest.Config) Option { return func(c *config) { c.api = api } }

// Kubeconfig sets the file to read instead of KUBECONFIG or ~/.kube/config, and the context to use
// in it, which is the current one if it is empty.
func Kubeconfig(path, context string) Option {
	return func(c *config) { c.kubeconfig, c.context = path, context }
}
