// Package consul is a registry in HashiCorp Consul.
//
// An instance is a service of a Consul agent: it has its address, port, metadata and weight in the catalogue,
// and a check of the kind TTL, to which its process gives signs of life. When the process dies the check fails
// and the instance goes; when the agent has forgotten it while the process lives, it is back within seconds.
// Services that others have registered are instances too.
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

// DefaultTTL is used where no option says otherwise.
const DefaultTTL = 10 * time.Second

const (
	// attemptTimeout bounds one request to the agent, readTimeout one for a list, which may be large.
	attemptTimeout = 3 * time.Second
	readTimeout    = 5 * time.Second
	// closeTimeout bounds how long Close withdraws what was announced, one request for each.
	closeTimeout = 30 * time.Second
)

// Registry announces and finds instances in Consul, and keeps documents in its KV store. All methods are safe
// for concurrent use.
type Registry struct {
	*config
	client    *api.Client
	transport *http.Transport
	agent     *agent
	announcer *announce.Announcer
	life      *upkeep.Life
	closing   sync.Once
}

// Dial returns a registry on the Consul agent at endpoint, host:port, as a rule the one on the same host. It
// returns at once, whether or not an agent is there: what needs one waits for it. A connection that went dead
// without a word is found within 16 s.
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

// Register implements registry.Registrar. Where Consul refuses the record, as it does without permission, it
// fails at once.
func (r *Registry) Register(ctx context.Context, in registry.Instance) error {
	return r.announcer.Register(ctx, r.serviceID(in), in)
}

// Deregister implements registry.Registrar. When ctx ends first, the record goes as soon as Consul can be
// reached.
func (r *Registry) Deregister(ctx context.Context, in registry.Instance) error {
	return r.announcer.Deregister(ctx, r.serviceID(in), in)
}

// Services implements registry.Lister. It waits for Consul until ctx is done. Consul names a service whose
// processes have died until it drops them, a minute or two later.
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

// Close implements registry.Registry. It withdraws what was announced, one request for each; where the agent
// cannot be reached it says so, and the checks run out by themselves.
func (r *Registry) Close() (err error) {
	r.closing.Do(func() {
		r.life.End()
		err = r.agent.withdraw(r.announcer.Close())
		r.transport.CloseIdleConnections()
	})
	return err
}

// attempt makes one request, for which Close waits: an answer that came later would leave its connection open.
func (r *Registry) attempt(ctx context.Context, timeout time.Duration, request func(*api.QueryOptions) error) error {
	return r.life.Do(func() error { return r.config.attempt(ctx, timeout, request) })
}

// ask makes a request that may be made again, until it succeeds, is hopeless, or ctx is done.
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
	case limited.Err() != nil: // not an error of a context that the caller knows
		return fmt.Errorf("consul at %s has not answered within %v", c.endpoint, timeout)
	case denied(err) && c.token == "":
		return fmt.Errorf("consul at %s refuses this: use the option consul.Token: %w", c.endpoint, err)
	case denied(err):
		return fmt.Errorf("consul at %s refuses this: look at the policies of the token: %w", c.endpoint, err)
	}
	return fmt.Errorf("consul at %s: %w", c.endpoint, err)
}

// status returns the HTTP status of an error that Consul has answered with, 0 for others.
func status(err error) int {
	if e, ok := errors.AsType[api.StatusError](err); ok {
		return e.Code
	}
	return 0
}

// hopeless reports whether the same request would fail again: it was refused for what it is or who makes it.
func hopeless(err error) bool {
	code := status(err)
	return denied(err) || errors.Is(err, registry.ErrClosed) ||
		code == http.StatusBadRequest || code == http.StatusUnauthorized || code == http.StatusRequestEntityTooLarge
}

// denied reports whether Consul does not let the token do this.
func denied(err error) bool {
	return status(err) == http.StatusForbidden || errors.Is(err, errDenied)
}

// config is what the options set.
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

// Option changes what Dial does.
type Option func(*config)

// Prefix sets what the names of all services in Consul start with, nothing by default: with "shop-", the
// instances of the service arith are those of shop-arith in Consul. It keeps apart what shares a Consul.
func Prefix(prefix string) Option { return func(c *config) { c.prefix = prefix } }

// TTL sets after what time without a sign of life an instance goes, DefaultTTL by default.
func TTL(d time.Duration) Option { return func(c *config) { c.ttl = d } }

// Logger sets who is told when instances are lost and found, nobody by default.
func Logger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// TLS connects with TLS, to the agent's https port; by default nobody does.
func TLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// Token sets the ACL token for all requests; by default that of the environment variable CONSUL_HTTP_TOKEN.
// It needs service:write for what is registered, service:read and node:read for what is watched, and key:write
// on anser/ for documents. Without TLS it crosses the network in the clear.
func Token(token string) Option { return func(c *config) { c.token = token } }
