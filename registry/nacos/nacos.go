// Package nacos is a registry in Nacos, over version 1 of its HTTP API, which servers have had since the
// first and which needs nothing but net/http.
//
// An instance is one of Nacos's own, with its address, weight, cluster (the zone) and metadata (version, zone,
// group and the tags), so that the console and other clients see what it is. Its exact record lies in the
// metadata too, under "anser.record". Instances that other programs have registered are found as well.
//
// This part of Nacos keeps no documents: a Registry is no registry.Store.
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

// What Dial uses where no option says otherwise.
const (
	DefaultContextPath = "/nacos"
	DefaultPoll        = time.Second
)

// beatEvery is the pause between two beats of an instance. Nacos takes one for dead after fifteen seconds
// without any, and forgets it after thirty.
const beatEvery = upkeep.MaxRenewal

// Registry announces and finds instances in Nacos. All methods are safe for concurrent use.
type Registry struct {
	client    *client
	namespace string
	poll      time.Duration
	owner     string // marks what this registry has announced
	announcer *upkeep.Announcer
	life      *upkeep.Life
	closing   sync.Once
}

// Dial returns a registry on the Nacos servers at addresses, each host:port; several are members of one
// cluster, of which one that answers is asked. It returns at once, whether or not a server is there: what
// needs one waits for it.
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
	r.announcer = upkeep.NewAnnouncer(&backend{registry: r}, beatEvery, cfg.log)
	return r, nil
}

// Register implements registry.Registrar. Nacos keeps a host and a port, so an instance at another kind of
// address is refused, and so is a second one at the same address.
func (r *Registry) Register(ctx context.Context, in registry.Instance) error {
	if err := in.Validate(); err != nil {
		return err
	}
	if strings.Contains(in.Address, "://") {
		return fmt.Errorf("nacos keeps a host and a port, and cannot have the address %q: register a host:port", in.Address)
	}
	return r.announcer.Register(ctx, in)
}

// Deregister implements registry.Registrar. When ctx ends first, the instance goes as soon as Nacos can be
// reached.
func (r *Registry) Deregister(ctx context.Context, in registry.Instance) error {
	return r.announcer.Deregister(ctx, in)
}

// Close implements registry.Registry. It gives a Nacos that does not answer a few seconds to withdraw what was
// announced, and one that does ten; where that fails it says so, and Nacos forgets the instances by itself.
func (r *Registry) Close() (err error) {
	r.closing.Do(func() {
		err = r.announcer.Close()
		r.life.End()
		r.client.http.CloseIdleConnections()
	})
	return err
}

// config is what the options set.
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

// Option changes what Dial does.
type Option func(*config)

// Namespace sets the id of the namespace that everything is in, Nacos's own "public" by default.
func Namespace(id string) Option { return func(c *config) { c.namespace = id } }

// PollEvery sets how often a watcher asks for its service, DefaultPoll by default.
func PollEvery(d time.Duration) Option { return func(c *config) { c.poll = d } }

// ContextPath sets what the paths of the API start with, DefaultContextPath by default.
func ContextPath(path string) Option { return func(c *config) { c.contextPath = path } }

// Logger sets who is told when Nacos is lost and found, nobody by default.
func Logger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// TLS connects with TLS; by default nothing does.
func TLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// User logs in; by default nobody does. Without TLS the password crosses the network in the clear.
func User(name, password string) Option {
	return func(c *config) { c.user, c.password = name, password }
}
