// Package etcd is a registry in etcd v3: in an existing cluster, or in the one that package
// embedded runs inside the process.
//
// An instance is one key, <prefix>/<service>/<key of the instance>, whose value is its record as
// written by registry.Encode. All instances of one Registry share one lease: when its process
// dies, they are removed when the lease expires; when the lease is lost while the process lives,
// they return within seconds, on a new one.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/rpcxlayout"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// Defaults of Dial and New.
const (
	DefaultPrefix = "/anser"
	DefaultTTL    = 10 * time.Second
)

// revokeTimeout bounds how long Close waits for etcd to withdraw the announced instances.
const revokeTimeout = 2 * time.Second

// Registry announces and finds instances in etcd. All methods are safe for concurrent use.
type Registry struct {
	client    *client
	prefix    string
	rpcx      bool // the instances are in the layout of rpcx
	names     rpcxlayout.Names
	log       *slog.Logger
	announcer *announcer
	life      *upkeep.Life
	closing   sync.Once
}

// Dial returns a registry on the etcd servers at endpoints, each host:port or an http or https
// URL. It returns at once, whether or not a server is up: methods that need one wait for it. A
// connection that is lost without a reset is detected within 13 s.
func Dial(endpoints []string, opts ...DialOption) (*Registry, error) {
	cfg := defaults()
	for _, opt := range opts {
		if o, ok := opt.(Option); opt == nil || ok && o == nil {
			return nil, errors.New("etcd.Dial: an option is nil")
		}
		opt.applyDial(&cfg)
	}
	if err := errors.Join(cfg.check(), checkEndpoints(endpoints, cfg.tls)); err != nil {
		return nil, err
	}
	tokens := newTokenSource(cfg.user, cfg.password)
	c, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		TLS:                  cfg.tls,
		DialKeepAliveTime:    10 * time.Second, // the minimum that gRPC allows
		DialKeepAliveTimeout: 3 * time.Second,
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithPerRPCCredentials(tokens),
			// gRPC's own backoff grows to two minutes, which is how long a server that is back
			// would go unnoticed.
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: 3 * time.Second,
			}),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("dial etcd at %s: %w", strings.Join(endpoints, ","), err)
	}
	return newRegistry(newClient(c, tokens, c.Close), cfg), nil
}

// New returns a registry that uses the caller's client, which Close does not close. The client
// needs a connection of its own, so a client of v3client does not work; set its DialKeepAliveTime,
// or a dead connection goes unnoticed for as long as TCP takes.
func New(c *clientv3.Client, opts ...Option) (*Registry, error) {
	if c == nil || c.ActiveConnection() == nil {
		return nil, errors.New("this etcd client has no connection: use etcd.Dial with the server's endpoints")
	}
	cfg := defaults()
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("etcd.New: an option is nil")
		}
		opt(&cfg)
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return newRegistry(newClient(c, nil, func() error { return nil }), cfg), nil
}

func newRegistry(c *client, cfg config) *Registry {
	life := upkeep.NewLife()
	return &Registry{
		client: c, prefix: cfg.prefix, rpcx: cfg.rpcx, log: cfg.log, life: life,
		announcer: newAnnouncer(life.Context(), c, cfg.ttl, cfg.log),
	}
}

// Register implements registry.Registrar. If etcd rejects the record, for example for lack of
// permission, it fails at once.
func (r *Registry) Register(ctx context.Context, in registry.Instance) error {
	key, value, err := r.encode(in)
	if err != nil {
		return err
	}
	if r.rpcx {
		if err := r.moveRPCX(ctx, in, key); err != nil {
			return err
		}
	}
	if err := r.announcer.ledger.Put(ctx, key, value); err != nil {
		return fmt.Errorf("register %q of service %q: %w", in.Key(), in.Service, err)
	}
	return nil
}

// Deregister implements registry.Registrar. If ctx ends first, the record is removed as soon as
// etcd can be reached.
func (r *Registry) Deregister(ctx context.Context, in registry.Instance) error {
	key := ""
	if r.rpcx {
		key = r.names.Take(in)
	} else {
		key = r.key(in)
	}
	if err := r.announcer.ledger.Remove(ctx, key); err != nil {
		return fmt.Errorf("deregister %q of service %q: %w", in.Key(), in.Service, err)
	}
	return nil
}

// Services implements registry.Lister. It waits for etcd until ctx is done.
func (r *Registry) Services(ctx context.Context) ([]string, error) {
	ctx, cancel := r.life.Within(ctx)
	defer cancel()
	var resp *clientv3.GetResponse
	err := r.client.retry(ctx, func(ctx context.Context) (err error) {
		resp, err = r.client.kv.Get(ctx, r.prefix+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}
	return slices.Sorted(maps.Keys(r.serviceNames(resp.Kvs))), nil
}

// Close implements registry.Registry. It allows etcd two seconds to withdraw the announced
// instances; if that fails, it returns an error, and the lease expires by itself.
func (r *Registry) Close() (err error) {
	r.closing.Do(func() {
		err = r.announcer.close()
		r.life.End()
		err = errors.Join(err, r.client.close())
	})
	return err
}

// config holds the settings made by options.
type config struct {
	prefix         string
	rpcx           bool
	ttl            time.Duration
	log            *slog.Logger
	tls            *tls.Config
	user, password string
}

func defaults() config {
	return config{prefix: DefaultPrefix, ttl: DefaultTTL, log: slog.New(slog.DiscardHandler)}
}

func (c *config) check() error {
	c.prefix = strings.TrimRight(c.prefix, "/")
	if c.rpcx {
		return c.checkRPCX()
	}
	if c.prefix != "" && c.prefix[0] != '/' {
		return fmt.Errorf("etcd prefix %q does not start with a slash: use %q", c.prefix, "/"+c.prefix)
	}
	return c.checkTTL()
}

func (c *config) checkTTL() error {
	if c.ttl < time.Second {
		return fmt.Errorf("etcd lease of %v is too short: use 1s or more", c.ttl)
	}
	return nil
}

// DialOption configures Dial. Every Option is also a DialOption.
type DialOption interface{ applyDial(*config) }

// Option configures Dial and New.
type Option func(*config)

func (o Option) applyDial(c *config) { o(c) }

type dialOption func(*config)

func (o dialOption) applyDial(c *config) { o(c) }

// Prefix sets the prefix of all keys, DefaultPrefix by default. It must start with a slash. Keys
// under it must be instances and documents only.
func Prefix(prefix string) Option { return func(c *config) { c.prefix = prefix } }

// TTL sets after how long without renewal etcd removes the instances, DefaultTTL by default. It is
// rounded up to whole seconds. etcd raises it to at least 1.5 times its election timeout.
func TTL(d time.Duration) Option { return func(c *config) { c.ttl = d } }

// Logger sets the logger for lost and restored leases; by default nothing is logged.
func Logger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// TLS connects with TLS; by default only https endpoints do, with the system's roots.
func TLS(cfg *tls.Config) DialOption { return dialOption(func(c *config) { c.tls = cfg }) }

// User authenticates as a user of etcd; the default is no authentication. Without TLS the password
// crosses the network in plain text.
func User(name, password string) DialOption {
	return dialOption(func(c *config) { c.user, c.password = name, password })
}
