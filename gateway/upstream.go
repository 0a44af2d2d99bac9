package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// upstream is a service of the registry, with the clients that call it.
type upstream struct {
	gateway *Gateway
	name    string
	asked   chan struct{} // closed when its first instances have been asked what they serve
	calls   atomic.Int64  // calls and streams that are with it
	left    func()        // leave; made once, so that a call does not allocate it

	mu      sync.Mutex // guards the fields below
	clients map[subset]*anser.Client
	closed  bool
	status  ServiceStatus
}

func newUpstream(g *Gateway, name string) *upstream {
	u := &upstream{gateway: g, name: name, asked: make(chan struct{}), status: ServiceStatus{Name: name}}
	u.left = u.leave
	return u
}

// enter counts a call, unless the service has all that it may have.
func (u *upstream) enter() error {
	n, most := u.calls.Add(1), u.gateway.callsOfService()
	if most == 0 || n <= most {
		return nil
	}
	u.leave()
	return anser.Refuse(anser.ResourceExhausted, "the service %s is at the gateway's limit of %d calls at once (limits.service)", u.name, most)
}

// leave takes back a call that enter has counted.
func (u *upstream) leave() { u.calls.Add(-1) }

// defaultCalls is the default of anser.MaxInFlight.
const defaultCalls = 10_000

// callsOfService returns how many calls one service may have at once; 0: all that the gateway has
// room for.
func (g *Gateway) callsOfService() int64 {
	limits := &g.plan.Load().config.Limits
	switch {
	case limits.Service > 0:
		return int64(limits.Service)
	case g.services.Load() < 2: // there is no other one to leave room for
		return 0
	}
	all := cmp.Or(limits.Calls, defaultCalls)
	return int64(all - max(1, all/10))
}

// subset is a part of the instances of a service. Empty fields match all.
type subset struct{ group, version string }

func (s subset) all() bool { return s == subset{} }

func (s subset) has(in *registry.Instance) bool {
	return (s.group == "" || in.Group == s.group) && (s.version == "" || in.Version == s.version)
}

// maxCall is the longest time of a call.
const maxCall = time.Hour

// client returns the client that calls a subset of the instances.
func (u *upstream) client(of subset) (*anser.Client, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, fmt.Errorf("service %s has left the registry", u.name)
	}
	if c := u.clients[of]; c != nil {
		return c, nil
	}
	c, err := anser.Dial("gateway:///"+u.name, u.options(of)...)
	if err != nil {
		return nil, err
	}
	if u.clients == nil {
		u.clients = make(map[subset]*anser.Client)
	}
	u.clients[of] = c
	return c, nil
}

func (u *upstream) options(of subset) []anser.DialOption {
	g := u.gateway
	source := registry.Scheme{Name: "gateway", Open: func(at *url.URL) (registry.Resolver, string, error) {
		return part{g.registry, of}, u.name, nil
	}}
	opts := []anser.DialOption{source, protocols.GRPC(), anser.NoSnapshot(), anser.Logger(g.log)}
	if store, ok := g.registry.(registry.Store); ok {
		opts = append(opts, route.Rules(route.Of(store, u.name)))
	}
	c := g.plan.Load().config
	opts = append(opts, anser.Timeout(maxCall)) // the gateway sets the deadlines
	if r := c.Retries; r != nil {
		opts = append(opts, anser.RetryBudget(r.Ratio, r.PerSecond))
	}
	return append(opts, g.o.Dial...)
}

func (u *upstream) close() {
	u.mu.Lock()
	clients := u.clients
	u.clients, u.closed = nil, true
	u.mu.Unlock()
	for _, c := range clients {
		c.Close()
	}
}

// part is the registry with a subset of the instances. The registry stays open when a client
// closes.
type part struct {
	all registry.Resolver
	of  subset
}

func (p part) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if p.of.all() {
		return p.all.Watch(ctx, service, update, trouble)
	}
	return p.all.Watch(ctx, service, func(list []registry.Instance) {
		update(slices.DeleteFunc(slices.Clone(list), func(in registry.Instance) bool { return !p.of.has(&in) }))
	}, trouble)
}

// NameOf implements registry.Namer.
func (p part) NameOf(service string) string {
	if p.of.group != "" {
		service += ", group " + p.of.group
	}
	if p.of.version != "" {
		service += ", version " + p.of.version
	}
	return service
}

// Refresh implements registry.Refresher.
func (p part) Refresh(service string) {
	if r, ok := p.all.(registry.Refresher); ok {
		r.Refresh(service)
	}
}

const (
	describeAgain = time.Second      // after it has failed, at first
	describeMost  = 30 * time.Second // and later
)

// follow keeps the description of the service up to date until ctx ends.
func (u *upstream) follow(ctx context.Context) {
	latest := make(chan []registry.Instance, 1)
	var wait sync.WaitGroup
	wait.Go(func() { u.describeAll(ctx, latest) })
	defer wait.Wait()
	err := u.gateway.registry.Watch(ctx, u.name, func(list []registry.Instance) {
		select {
		case <-latest: // the older one is of no use
		default:
		}
		latest <- list
	}, nil)
	if ctx.Err() == nil && !errors.Is(err, registry.ErrClosed) {
		u.gateway.log.Error("gateway: a service of the registry cannot be watched", "service", u.name, "error", err)
	}
}

// describeAll asks the instances of each list what they serve, and asks again after a failure.
func (u *upstream) describeAll(ctx context.Context, latest <-chan []registry.Instance) {
	var list []registry.Instance
	known := ""
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	asked := sync.OnceFunc(func() { close(u.asked) })
	defer asked()
	pause := describeAgain
	for {
		select {
		case <-ctx.Done():
			return
		case list = <-latest:
		case <-again.C:
		}
		key := surfaces(list)
		if len(list) == 0 || key == known {
			asked()
			continue // a service without instances keeps its methods: its instances may be restarting
		}
		err := u.describe(ctx, list)
		asked()
		switch {
		case err == nil:
			known, pause = key, describeAgain
		case ctx.Err() == nil:
			again.Reset(pause)
			pause = min(2*pause, describeMost)
		}
	}
}

// surfaces returns what the instances of a service announce of their methods. Instances that
// announce no contracts may differ for all that is known.
func surfaces(list []registry.Instance) string {
	var keys []string
	for _, in := range list {
		key := surface(&in)
		if key == in.Version {
			key += "\n@" + in.Key()
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return fmt.Sprintf("%q", slices.Compact(keys))
}

// describe asks instances what they serve, and serves it.
func (u *upstream) describe(ctx context.Context, list []registry.Instance) error {
	c, err := u.client(subset{})
	if err != nil {
		return err
	}
	list = representatives(list)
	awaitKnown(ctx, c, list)
	d, err := describe(ctx, c, list)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if d != nil {
		if bad := u.gateway.methods.set(u, d); bad != nil {
			d, err = nil, bad
		}
	}
	u.report(d, err)
	return err
}

// knownBound is how long a client may take to learn about the instances that the gateway knows.
const knownBound = time.Second

// awaitKnown waits until the client knows the instances. It follows the registry by itself, and may
// learn about them a moment later than the gateway: until then, a call to one of them fails.
func awaitKnown(ctx context.Context, c *anser.Client, list []registry.Instance) {
	ctx, cancel := context.WithTimeout(ctx, knownBound)
	defer cancel()
	for pause := time.Millisecond; ; pause *= 2 {
		known, err := c.Instances(ctx)
		if ctx.Err() != nil || err == nil && !slices.ContainsFunc(list, func(in registry.Instance) bool {
			return !slices.ContainsFunc(known, func(k registry.Instance) bool { return k.Key() == in.Key() })
		}) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// report remembers and logs what is known of the service.
func (u *upstream) report(d *description, err error) {
	u.mu.Lock()
	before := u.status
	now := ServiceStatus{Name: u.name, Methods: before.Methods, Bare: before.Bare}
	if err != nil {
		now.Problem = err.Error()
	}
	if d != nil {
		now.Methods, now.Bare = d.translated(), d.bare
	}
	u.status = now
	u.mu.Unlock()
	log := u.gateway.log
	switch {
	case err != nil && now.Problem != before.Problem:
		u.gateway.counts.undescribed.Add(1)
		log.Warn("gateway: a service does not say what it serves", "service", u.name, "error", err)
	case d != nil && len(d.bare) > 0 && !slices.Equal(before.Bare, d.bare):
		u.gateway.counts.undescribed.Add(1)
		log.Warn("gateway: methods have no contract, and are not served: give them one with anser.Contract", "service", u.name, "methods", d.bare)
	case d != nil && !slices.Equal(before.Methods, now.Methods):
		log.Info("gateway: serves a service", "service", u.name, "methods", len(now.Methods))
	}
}
