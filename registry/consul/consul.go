// Package consul is a registry in HashiCorp Consul.
//
// An instance is a service of a Consul agent: its address, port, metadata and weight are in the
// catalogue, together with a TTL check that its process passes by heartbeats. When the process
// dies, the check fails and the instance is removed; when the agent loses the instance while the
// process lives, it is registered again within seconds. Services registered by other tools are
// instances, too.
package consul

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/announce"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// DefaultTTL is the TTL unless the option TTL sets another.
const DefaultTTL = 10 * time.Second

const (
	// attemptTimeout bounds one request to the agent; readTimeout bounds one that reads a list,
	// which may be large.
	attemptTimeout = 3 * time.Second
	readTimeout    = 5 * time.Second
	// closeTimeout bounds how long Close may take to withdraw the announced instances, with one
	// request per instance.
	closeTimeout = 30 * time.Second
)

// Registry announces and finds instances in Consul, and keeps documents in its KV store. All
// methods are safe for concurrent use.
type Registry struct {
	*config
	client    *api.Client
	transport *http.Transport
	agent     *agent
	announcer *announce.Announcer
	life      *upkeep.Life
	closing   sync.Once
}

// Dial returns a registry that uses the Consul agent at endpoint, host:port, usually the one on
// the same host. It returns at once, whether or not the agent is up: methods that need the agent
// wait for it. A connection that is lost without a reset is detected within 16 s.
func Dial(endpoint string, opts ...Option) (*Registry, error) {
	cfg := defaults()
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("consul.Dial: an option is nil")
		}
		opt(&cfg)
	}
	if err := errors.Join(cfg.check(), checkEndpoint(endpoint)); err != nil {
		return nil, err
	}
	cfg.endpoint = endpoint
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: attemptTimeout, KeepAlive: 10 * time.Second}).DialContext,
		TLSClientConfig:     cfg.tls,
		TLSHandshakeTimeout: attemptTimeout,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     time.Minute,
	}
	scheme := "http"
	if cfg.tls != nil {
		scheme = "https"
	}
	client, err := api.NewClient(&api.Config{
		Address: endpoint, Scheme: scheme, Token: cfg.token, HttpClient: &http.Client{Transport: transport},
	})
	if err != nil {
		return nil, fmt.Errorf("dial consul at %s: %w", endpoint, err)
	}
	r := &Registry{config: &cfg, client: client, transport: transport, life: upkeep.NewLife()}
	r.agent = newAgent(&cfg, client)
	r.announcer = announce.New(announce.Config{
		Store: r.agent, Every: upkeep.Renewal(cfg.ttl), Hopeless: hopeless, Log: cfg.log,
	})
	return r, nil
}

// Register implements registry.Registrar. If Consul rejects the record, for example because the
// token lacks permission, it fails at once.
func (r *Registry) Register(ctx context.Context, in registry.Instance) error {
	return r.announcer.Register(ctx, r.serviceID(in), in)
}

// Deregister implements registry.Registrar. If ctx ends first, the record is removed as soon as
// Consul can be reached.
func (r *Registry) Deregister(ctx context.Context, in registry.Instance) error {
	return r.announcer.Deregister(ctx, r.serviceID(in), in)
}

// Services implements registry.Lister. It waits for Consul until ctx is done. Consul lists a
// service whose processes have died until it drops their checks, a minute or two later.
func (r *Registry) Services(ctx context.Context) ([]string, error) {
	names, err := ask(ctx, r, func(q *api.QueryOptions) ([]string, error) {
		all, _, err := r.client.Catalog().Services(q)
		var names []string
		for full := range all {
			name, ok := strings.CutPrefix(full, r.prefix)
			if ok && full != "consul" && registry.CheckService(name) == nil {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, err
	})
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}
	return names, nil
}

// Close implements registry.Registry. It withdraws the announced instances, with one request per
// instance. If the agent cannot be reached, it returns an error, and the checks expire by
// themselves.
func (r *Registry) Close() (err error) {
	r.closing.Do(func() {
		r.life.End()
		err = r.agent.withdraw(r.announcer.Close())
		r.transport.CloseIdleConnections()
	})
	return err
}

// attempt makes one request, which Close waits for: a later answer would leave its connection
// open.
func (r *Registry) attempt(ctx context.Context, timeout time.Duration, request func(*api.QueryOptions) error) error {
	return r.life.Do(func() error { return r.config.attempt(ctx, timeout, request) })
}

// ask makes an idempotent request until it succeeds, fails permanently, or ctx is done.
func ask[T any](ctx context.Context, r *Registry, request func(*api.QueryOptions) (T, error)) (answer T, err error) {
	ctx, cancel := r.life.Within(ctx)
	defer cancel()
	err = upkeep.Retry(ctx, func(ctx context.Context) error {
		err := r.attempt(ctx, readTimeout, func(q *api.QueryOptions) (err error) {
			q.RequireConsistent = true // see follow
			answer, err = request(q)
			return err
		})
		if hopeless(err) {
			return upkeep.Hopeless(err)
		}
		return err
	})
	return answer, err
}

// attempt makes one request.
func (c *config) attempt(ctx context.Context, timeout time.Duration, request func(*api.QueryOptions) error) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := request(new(api.QueryOptions).WithContext(limited))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil: // not the caller's own context
		return fmt.Errorf("consul at %s has not answered within %v", c.endpoint, timeout)
	case denied(err) && c.token == "":
		return fmt.Errorf("consul at %s denied the request: use the option consul.Token: %w", c.endpoint, err)
	case denied(err):
		return fmt.Errorf("consul at %s denied the request: check the policies of the token: %w", c.endpoint, err)
	}
	return fmt.Errorf("consul at %s: %w", c.endpoint, err)
}

// status returns the HTTP status of an error response from Consul, or 0 for other errors.
func status(err error) int {
	if e, ok := errors.AsType[api.StatusError](err); ok {
		return e.Code
	}
	return 0
}

// hopeless reports whether the same request would fail again: Consul rejected its content or its
// token.
func hopeless(err error) bool {
	code := status(err)
	return denied(err) || errors.Is(err, registry.ErrClosed) ||
		code == http.StatusBadRequest || code == http.StatusUnauthorized || code == http.StatusRequestEntityTooLarge
}

// denied reports whether Consul denied the token this operation.
func denied(err error) bool {
	return status(err) == http.StatusForbidden || errors.Is(err, errDenied)
}

// config holds the settings made by options.
type config struct {
	endpoint string
	prefix   string
	ttl      time.Duration
	log      *slog.Logger
	tls      *tls.Config
	token    string
}

func defaults() config {
	return config{ttl: DefaultTTL, log: slog.New(slog.DiscardHandler)}
}

func (c *config) check() error {
	if c.prefix != "" {
		if err := registry.CheckService(c.prefix); err != nil {
			return fmt.Errorf("consul prefix: %w", err)
		}
	}
	if c.ttl < time.Second {
		return fmt.Errorf("consul TTL of %v is too short: use 1s or more", c.ttl)
	}
	return nil
}

// Option configures Dial.
type Option func(*config)

// Prefix sets the prefix of all service names in Consul, "" by default: with "shop-", the
// instances of the service arith are those of shop-arith in Consul. It separates applications that
// share a Consul cluster.
func Prefix(prefix string) Option { return func(c *config) { c.prefix = prefix } }

// TTL sets after how long without a heartbeat an instance is removed, DefaultTTL by default.
func TTL(d time.Duration) Option { return func(c *config) { c.ttl = d } }

// Logger sets the logger for lost and restored instances; by default nothing is logged.
func Logger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// TLS connects with TLS, to the agent's https port; the default is plain TCP.
func TLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// Token sets the ACL token of all requests, by default the one in the environment variable
// CONSUL_HTTP_TOKEN. It needs service:write for services that are registered, service:read and
// node:read for services that are watched, and key:write on anser/ for documents. Without TLS it
// crosses the network in plain text.
func Token(token string) Option { return func(c *config) { c.token = token } }
