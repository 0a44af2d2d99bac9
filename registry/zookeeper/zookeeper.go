// Package zookeeper is a registry in Apache ZooKeeper 3.5 and newer.
//
// An instance is one ephemeral node, <prefix>/services/<service>/<key of the instance>, whose data
// are its record as written by registry.Encode. All instances of one Registry belong to one
// session: when its process dies, they are removed when the session expires; when the session is
// lost while the process lives, they return within seconds, in a new one.
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
	"github.com/anser-rpc/anser/registry/internal/rpcxlayout"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// Defaults of Dial.
const (
	DefaultPrefix = "/anser"
	DefaultTTL    = 10 * time.Second
)

// Registry announces and finds instances in ZooKeeper, and keeps documents there. All methods are
// safe for concurrent use. It opens one session for announcing and one for reading, each when it
// is first needed.
type Registry struct {
	*config
	writer    *writer
	names     rpcxlayout.Names
	announcer *announce.Announcer
	reader    *reader
	life      *upkeep.Life
	closing   sync.Once
}

// Dial returns a registry on the ZooKeeper servers at endpoints, each host:port. It returns at
// once, whether or not a server is up: methods that need one wait for it. A connection that is
// lost without a reset is detected after two thirds of the TTL.
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

// Register implements registry.Registrar. If ZooKeeper rejects the record, for example for lack of
// permission, it fails at once.
func (r *Registry) Register(ctx context.Context, in registry.Instance) error {
	if r.rpcx {
		if err := r.moveRPCX(ctx, in); err != nil {
			return err
		}
	}
	return r.announcer.Register(ctx, r.instancePath(in), in)
}

// Deregister implements registry.Registrar. If ctx ends first, the record is removed as soon as
// ZooKeeper can be reached.
func (r *Registry) Deregister(ctx context.Context, in registry.Instance) error {
	path := r.instancePath(in)
	if r.rpcx {
		path = r.names.Take(in)
	}
	return r.announcer.Deregister(ctx, path, in)
}

// Close implements registry.Registry. It allows ZooKeeper five seconds to end the session, and
// with it the announced instances; if that fails, it returns an error, and the session expires by
// itself.
func (r *Registry) Close() (err error) {
	r.closing.Do(func() {
		r.life.End()
		keys := r.announcer.Close()
		err = r.writer.close(len(keys) > 0)
		r.reader.close()
	})
	return err
}

// config holds the settings made by options.
type config struct {
	endpoints      []string
	prefix         string
	rpcx           bool // the instances are in the layout of rpcx
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
	if c.rpcx {
		if err := rpcxlayout.CheckBase(c.prefix); err != nil {
			return fmt.Errorf("zookeeper.RPCX: %w", err)
		}
	}
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

// Option configures Dial.
type Option func(*config)

// Prefix sets the root node of the registry, DefaultPrefix by default. It must start with a slash,
// and is created if it does not exist. With "/", instances are at /services/<service>/<key>.
func Prefix(prefix string) Option { return func(c *config) { c.prefix = prefix } }

// TTL sets after how long without a heartbeat ZooKeeper removes the instances, DefaultTTL by
// default. The server raises or lowers it to between 2 and 20 of its ticks, which are 2 s by
// default.
func TTL(d time.Duration) Option { return func(c *config) { c.ttl = d } }

// Logger sets the logger for lost and restored sessions; by default nothing is logged.
func Logger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// TLS connects with TLS, to the server's secureClientPort; the default is plain TCP. If ServerName
// is empty, the certificate must contain the host of the endpoint.
func TLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// Digest authenticates with name and password; the default is no authentication. Nodes written by
// the registry may then be read and changed by this user only, unless ACL says otherwise. Without
// TLS the password crosses the network in plain text.
func Digest(name, password string) Option {
	return func(c *config) { c.user, c.password = name, password }
}

// ACL sets the access control list of new nodes: by default every user has all permissions, or
// with Digest its user alone. It does not change existing nodes.
func ACL(acl ...zk.ACL) Option { return func(c *config) { c.acl = acl } }
