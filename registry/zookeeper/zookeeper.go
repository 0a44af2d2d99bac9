// Package zookeeper is a registry in Apache ZooKeeper 3.5 and newer.
//
// An instance is one ephemeral node, <prefix>/services/<service>/<key of the instance>, whose data are its
// record as registry.Encode writes it. All instances of one Registry belong to one session: when its process
// dies, they go when the session runs out; when the session is lost while the process lives, they are back
// within seconds, in a new one.
package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/announce"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// What Dial uses where no option says otherwise.
const (
	DefaultPrefix = "/anser"
	DefaultTTL    = 10 * time.Second
)

// Registry announces and finds instances in ZooKeeper, and keeps documents there. All methods are safe for
// concurrent use. It opens one session when something is to be announced, and one when something is to be read.
type Registry struct {
	*config
	writer    *writer
	announcer *announce.Announcer
	reader    *reader
	life      *upkeep.Life
	closing   sync.Once
}

// Dial returns a registry on the ZooKeeper servers at endpoints, each host:port. It returns at once, whether or
// not a server is there: what needs one waits for it. A connection that went dead without a word is found
// after two thirds of the TTL.
func Dial(endpoints []string, opts ...Option) (*Registry, error) {
	cfg := defaults()
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("zookeeper.Dial: an option is nil")
		}
		opt(&cfg)
	}
	if err := errors.Join(cfg.check(), targets.CheckServers(endpoints)); err != nil {
		return nil, err
	}
	cfg.endpoints = slices.Clone(endpoints)
	life := upkeep.NewLife()
	r := &Registry{config: &cfg, life: life, reader: newReader(life.Context(), &cfg), writer: &writer{config: &cfg}}
	r.announcer = announce.New(announce.Config{
		Store: r.writer, Every: upkeep.Renewal(cfg.ttl), Hopeless: hopeless, Log: cfg.log,
	})
	r.writer.hurry = r.announcer.Hurry
	return r, nil
}

// Register implements registry.Registrar. Where ZooKeeper refuses the record, as it does without permission, it
// fails at once.
func (r *Registry) Register(ctx context.Context, in registry.Instance) error {
	return r.announcer.Register(ctx, r.instancePath(in), in)
}

// Deregister implements registry.Registrar. When ctx ends first, the record goes as soon as ZooKeeper can be
// reached.
func (r *Registry) Deregister(ctx context.Context, in registry.Instance) error {
	return r.announcer.Deregister(ctx, r.instancePath(in), in)
}

// Close implements registry.Registry. It gives ZooKeeper five seconds to end the session, and with it what was
// announced; where that fails it says so, and the session runs out by itself.
func (r *Registry) Close() (err error) {
	r.closing.Do(func() {
		r.life.End()
		keys := r.announcer.Close()
		err = r.writer.close(len(keys) > 0)
		r.reader.close()
	})
	return err
}

// config is what the options set.
type config struct {
	endpoints      []string
	prefix         string
	ttl            time.Duration
	log            *slog.Logger
	tls            *tls.Config
	user, password string
	acl            []zk.ACL
}

func defaults() config {
	return config{prefix: DefaultPrefix, ttl: DefaultTTL, log: slog.New(slog.DiscardHandler)}
}

func (c *config) check() error {
	c.prefix = strings.TrimRight(c.prefix, "/")
	if c.prefix != "" && c.prefix[0] != '/' {
		return fmt.Errorf("zookeeper prefix %q does not start with a slash: use %q", c.prefix, "/"+c.prefix)
	}
	if err := checkPrefix(c.prefix); err != nil {
		return err
	}
	if c.ttl < time.Second {
		return fmt.Errorf("zookeeper session of %v is too short: use 1s or more", c.ttl)
	}
	if c.user == "" && c.password != "" || strings.Contains(c.user, ":") {
		return errors.New("zookeeper digest has a user that is empty or has a colon: use zookeeper.Digest(name, password)")
	}
	if c.acl == nil {
		c.acl = zk.WorldACL(zk.PermAll)
		if c.user != "" {
			c.acl = zk.AuthACL(zk.PermAll)
		}
	}
	return nil
}

// Option changes what Dial does.
type Option func(*config)

// Prefix sets the node under which everything is, DefaultPrefix by default. It starts with a slash, and is made
// if it is not there. With "/", instances are at /services/<service>/<key>.
func Prefix(prefix string) Option { return func(c *config) { c.prefix = prefix } }

// TTL sets after what time without a sign of life ZooKeeper drops the instances, DefaultTTL by default. The
// server raises or lowers it to between 2 and 20 of its ticks, which are 2 s unless its configuration says
// otherwise.
func TTL(d time.Duration) Option { return func(c *config) { c.ttl = d } }

// Logger sets who is told when the session is lost and found, nobody by default.
func Logger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// TLS connects with TLS, to the server's secureClientPort; by default nobody does. Where ServerName is empty,
// the certificate has to name the host of the endpoint.
func TLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// Digest authenticates with name and password; by default nobody does. What is written may then be read and
// changed by this user alone, unless ACL says otherwise. Without TLS the password crosses the network in the
// clear.
func Digest(name, password string) Option {
	return func(c *config) { c.user, c.password = name, password }
}

// ACL sets who may do what with the nodes that are made: by default everybody everything, or with Digest its
// user everything. It does not change nodes that are there.
func ACL(acl ...zk.ACL) Option { return func(c *config) { c.acl = acl } }
