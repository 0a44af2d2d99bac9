// Package nacos is a registry in Nacos, over version 1 of its HTTP API, which all server versions
// support and which needs nothing but net/http.
//
// An instance has the form of Nacos's own, with its address, weight, cluster (the zone) and
// metadata (version, zone, group and the tags), so that the console and other clients can read it.
// Its exact record is also in the metadata, under "anser.record". Instances registered by other
// programs are found as well.
//
// This API of Nacos has no documents: a Registry is not a registry.Store.
package nacos

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

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// Defaults of Dial.
const (
	DefaultContextPath = "/nacos"
	DefaultPoll        = time.Second
)

// beatEvery is the interval between the heartbeats of an instance. Nacos marks an instance as
// unhealthy after fifteen seconds without one, and removes it after thirty.
const beatEvery = upkeep.MaxRenewal

// Registry announces and finds instances in Nacos. All methods are safe for concurrent use.
type Registry struct {
	client    *client
	namespace string
	poll      time.Duration
	owner     string // marks the records announced by this registry
	announcer *upkeep.Announcer
	life      *upkeep.Life
	closing   sync.Once
}

// Dial returns a registry on the Nacos servers at addresses, each host:port; several addresses are
// members of one cluster, and any of them may answer a request. It returns at once, whether or not
// a server is up: methods that need one wait for it.
func Dial(addresses []string, opts ...Option) (*Registry, error) {
	cfg := config{contextPath: DefaultContextPath, poll: DefaultPoll, log: slog.New(slog.DiscardHandler)}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("nacos.Dial: an option is nil")
		}
		opt(&cfg)
	}
	if err := errors.Join(cfg.check(), targets.CheckServers(addresses)); err != nil {
		return nil, err
	}
	r := &Registry{
		client: newClient(addresses, cfg), namespace: cfg.namespace, poll: cfg.poll,
		owner: rand.Text(), life: upkeep.NewLife(),
	}
	r.announcer = upkeep.NewAnnouncer(&backend{registry: r, written: make(map[announced]int64)}, beatEvery, cfg.log)
	return r, nil
}

// Register implements registry.Registrar. Nacos keeps a host and a port, so an instance with
// another kind of address is rejected, and so is a second one at the same address.
func (r *Registry) Register(ctx context.Context, in registry.Instance) error {
	if err := in.Validate(); err != nil {
		return err
	}
	if strings.Contains(in.Address, "://") {
		return fmt.Errorf("nacos keeps a host and a port, and cannot have the address %q: register a host:port", in.Address)
	}
	return r.announcer.Register(ctx, in)
}

// Deregister implements registry.Registrar. If ctx ends first, the instance is removed as soon as
// Nacos can be reached.
func (r *Registry) Deregister(ctx context.Context, in registry.Instance) error {
	return r.announcer.Deregister(ctx, in)
}

// Close implements registry.Registry. It withdraws the announced instances, for which it allows a
// few seconds if Nacos does not answer, and ten if it does; if that fails, it returns an error,
// and the instances expire by themselves.
func (r *Registry) Close() (err error) {
	r.closing.Do(func() {
		err = r.announcer.Close()
		r.life.End()
		r.client.http.CloseIdleConnections()
	})
	return err
}

// config holds the settings made by options.
type config struct {
	contextPath    string
	namespace      string
	poll           time.Duration
	log            *slog.Logger
	tls            *tls.Config
	user, password string
}

func (c *config) check() error {
	c.contextPath = strings.TrimRight(c.contextPath, "/")
	if c.contextPath != "" && c.contextPath[0] != '/' {
		return fmt.Errorf("nacos context path %q does not start with a slash: use %q", c.contextPath, "/"+c.contextPath)
	}
	if c.poll < 10*time.Millisecond {
		return fmt.Errorf("nacos poll interval of %v is too short: use 10ms or more, and better 1s", c.poll)
	}
	return nil
}

// Option configures Dial.
type Option func(*config)

// Namespace sets the ID of the namespace, Nacos's own "public" by default.
func Namespace(id string) Option { return func(c *config) { c.namespace = id } }

// PollEvery sets how often a watch reads its service, DefaultPoll by default.
func PollEvery(d time.Duration) Option { return func(c *config) { c.poll = d } }

// ContextPath sets the prefix of the API's paths, DefaultContextPath by default.
func ContextPath(path string) Option { return func(c *config) { c.contextPath = path } }

// Logger sets the logger for lost and restored connections to Nacos; by default nothing is logged.
func Logger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// TLS connects with TLS; the default is plain TCP.
func TLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// User logs in; the default is no login. Without TLS the password crosses the network in plain
// text.
func User(name, password string) Option {
	return func(c *config) { c.user, c.password = name, password }
}
