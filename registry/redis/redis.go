// Package redis is a registry in Redis 7.0 or newer, or in what speaks its protocol: a single server, one
// that sentinels look after, or a cluster.
//
// The instances of a service are the fields of one hash, <prefix>:{<service>}:instances, whose values are
// their records as registry.Encode writes them. A sorted set beside it has when each of them expires; they
// are renewed three times within that time. Scripts inside the server change both at once and publish that
// they did. Publishing is lossy in Redis, so watchers also ask every three seconds whether anything has
// changed, which costs a few bytes.
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

// What Dial and New use where no option says otherwise.
const (
	DefaultPrefix = "anser"
	DefaultTTL    = 10 * time.Second
)

// Registry announces and finds instances in Redis, and keeps documents there. All methods are safe for
// concurrent use.
type Registry struct {
	client    *client
	prefix    string
	ttl       time.Duration
	owner     string // marks what this registry has announced
	announcer *upkeep.Announcer
	life      *upkeep.Life
	closing   sync.Once
}

var _ registry.Store = (*Registry)(nil)

// Dial returns a registry on the Redis at addresses, each host:port: one of a single server, or two or
// more nodes of one cluster. It returns at once, whether or not a server is there: what needs one waits for it.
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

// New returns a registry that uses a client the caller has, and keeps: Close does not close it. This is how
// to use sentinels. Set DisableRetry in its options, or an outage goes unnoticed for as long as it retries.
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

// Register implements registry.Registrar. Where Redis refuses the record, as it does without permission, it
// fails at once.
func (r *Registry) Register(ctx context.Context, in registry.Instance) error {
	return r.announcer.Register(ctx, in)
}

// Deregister implements registry.Registrar. When ctx ends first, the record goes as soon as Redis can be
// reached.
func (r *Registry) Deregister(ctx context.Context, in registry.Instance) error {
	return r.announcer.Deregister(ctx, in)
}

// Close implements registry.Registry. It gives a Redis that does not answer a few seconds to withdraw what was
// announced, and one that does ten; where that fails it says so, and the instances expire by themselves.
func (r *Registry) Close() (err error) {
	r.closing.Do(func() {
		err = r.announcer.Close()
		r.life.End()
		r.client.close()
	})
	return err
}

// config is what the options set.
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

// DialOption changes what Dial does. Every Option is one.
type DialOption interface{ applyDial(*config) }

// Option changes what Dial and New do.
type Option func(*config)

func (o Option) applyDial(c *config) { o(c) }

type dialOption func(*config)

func (o dialOption) applyDial(c *config) { o(c) }

// Prefix sets what all keys start with, before a colon, DefaultPrefix by default.
func Prefix(prefix string) Option { return func(c *config) { c.prefix = prefix } }

// TTL sets after what time without a sign of life instances go, DefaultTTL by default.
func TTL(d time.Duration) Option { return func(c *config) { c.ttl = d } }

// Logger sets who is told when Redis is lost and found, nobody by default.
func Logger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// TLS connects with TLS; by default nothing does.
func TLS(cfg *tls.Config) DialOption { return dialOption(func(c *config) { c.tls = cfg }) }

// User authenticates; by default nobody does. The name is empty where Redis has only a password. Without TLS
// the password crosses the network in the clear.
func User(name, password string) DialOption {
	return dialOption(func(c *config) { c.user, c.password = name, password })
}

// Database chooses one of the numbered databases of a single server, 0 by default. A cluster has only that.
func Database(n int) DialOption { return dialOption(func(c *config) { c.database = n }) }
