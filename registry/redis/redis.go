// Package redis is a registry in Redis 7.0 or newer, or in a server that speaks its protocol: a
// single server, one monitored by sentinels, or a cluster.
//
// The instances of a service are the fields of one hash, <prefix>:{<service>}:instances, whose
// values are their records as written by registry.Encode. A second key, a sorted set, holds when
// each of them expires; they are renewed three times within that time. Scripts on the server
// change both atomically and publish the change. Publishing is lossy in Redis, so watchers also
// check for changes every three seconds, which costs a few bytes.
package redis

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// Defaults of Dial and New.
const (
	DefaultPrefix = "anser"
	DefaultTTL    = 10 * time.Second
)

// Registry announces and finds instances in Redis, and keeps documents there. All methods are safe
// for concurrent use.
type Registry struct {
	client    *client
	prefix    string
	ttl       time.Duration
	owner     string // marks the records announced by this registry
	announcer *upkeep.Announcer
	life      *upkeep.Life
	closing   sync.Once
}

var _ registry.Store = (*Registry)(nil)

// Dial returns a registry on the Redis at addresses, each host:port: one address for a single
// server, or two or more nodes of one cluster. It returns at once, whether or not a server is up:
// methods that need one wait for it.
func Dial(addresses []string, opts ...DialOption) (*Registry, error) {
	cfg := defaults()
	for _, opt := range opts {
		if o, ok := opt.(Option); opt == nil || ok && o == nil {
			return nil, errors.New("redis.Dial: an option is nil")
		}
		opt.applyDial(&cfg)
	}
	if err := errors.Join(cfg.check(), targets.CheckServers(addresses)); err != nil {
		return nil, err
	}
	life := upkeep.NewLife()
	return newRegistry(dialling(life, addresses, cfg), cfg, life), nil
}

// New returns a registry that uses the caller's client, which Close does not close. Use it for
// sentinels. Set DisableRetry in the client's options, or an outage goes unnoticed for as long as
// it retries.
func New(c rueidis.Client, opts ...Option) (*Registry, error) {
	if c == nil {
		return nil, errors.New("this Redis client is nil: make one, or use redis.Dial with the server's address")
	}
	cfg := defaults()
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("redis.New: an option is nil")
		}
		opt(&cfg)
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	life := upkeep.NewLife()
	return newRegistry(&client{life: life, addresses: "the address of its client", made: c, kept: true}, cfg, life), nil
}

func newRegistry(c *client, cfg config, life *upkeep.Life) *Registry {
	r := &Registry{client: c, prefix: cfg.prefix, ttl: cfg.ttl, owner: rand.Text(), life: life}
	r.announcer = upkeep.NewAnnouncer(backend{r}, upkeep.Renewal(cfg.ttl), cfg.log)
	return r
}

// Register implements registry.Registrar. If Redis rejects the record, for example for lack of
// permission, it fails at once.
func (r *Registry) Register(ctx context.Context, in registry.Instance) error {
	return r.announcer.Register(ctx, in)
}

// Deregister implements registry.Registrar. If ctx ends first, the record is removed as soon as
// Redis can be reached.
func (r *Registry) Deregister(ctx context.Context, in registry.Instance) error {
	return r.announcer.Deregister(ctx, in)
}

// Close implements registry.Registry. It withdraws the announced instances, for which it allows a
// few seconds if Redis does not answer, and ten if it does; if that fails, it returns an error,
// and the instances expire by themselves.
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
	prefix         string
	ttl            time.Duration
	log            *slog.Logger
	tls            *tls.Config
	user, password string
	database       int
}

func defaults() config {
	return config{prefix: DefaultPrefix, ttl: DefaultTTL, log: slog.New(slog.DiscardHandler)}
}

func (c *config) check() error {
	if c.prefix == "" || strings.ContainsFunc(c.prefix, func(r rune) bool { return r <= ' ' || strings.ContainsRune("{}*?[]\\", r) }) {
		return fmt.Errorf("redis prefix %q: use a name without spaces and any of {}*?[]\\, for example %q", c.prefix, DefaultPrefix)
	}
	if c.ttl < time.Second {
		return fmt.Errorf("redis time to live of %v is too short: use 1s or more", c.ttl)
	}
	if c.database < 0 {
		return fmt.Errorf("redis database %d: use 0 or more", c.database)
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

// Prefix sets the first part of all keys, before a colon, DefaultPrefix by default.
func Prefix(prefix string) Option { return func(c *config) { c.prefix = prefix } }

// TTL sets after how long without renewal instances are removed, DefaultTTL by default.
func TTL(d time.Duration) Option { return func(c *config) { c.ttl = d } }

// Logger sets the logger for lost and restored connections to Redis; by default nothing is logged.
func Logger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// TLS connects with TLS; the default is plain TCP.
func TLS(cfg *tls.Config) DialOption { return dialOption(func(c *config) { c.tls = cfg }) }

// User authenticates; the default is no authentication. The name is empty if Redis has only a
// password. Without TLS the password crosses the network in plain text.
func User(name, password string) DialOption {
	return dialOption(func(c *config) { c.user, c.password = name, password })
}

// Database chooses one of the numbered databases of a single server, 0 by default. A cluster has
// only database 0.
func Database(n int) DialOption { return dialOption(func(c *config) { c.database = n }) }
