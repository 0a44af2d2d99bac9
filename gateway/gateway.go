// Package gateway is one port for the services of a registry: calls in all protocols of package
// protocols come in there, and go on to the instances of the services. It learns the methods
// from the descriptions that the services publish, so it needs no configuration:
//
//	curl http://gateway/arith/Arith.Mul -d '{"A":7,"B":8}'
package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/record"
	"github.com/anser-rpc/anser/registry"
)

// Options are the parts of a gateway that its program provides.
type Options struct {
	// Registry finds the services and their instances. If it is a registry.Lister, all of its
	// services are found, and if it is a registry.Store, their traffic rules apply. It stays open.
	Registry registry.Resolver
	// Server and Dial are further options of the gateway's server, and of its clients.
	Server []anser.ServerOption
	Dial   []anser.DialOption
	// Tools returns what offers methods as tools over the Model Context Protocol, for the part mcp
	// of a configuration; without it, a configuration with that part is refused. For module mcp it
	// is
	//
	//	func(m gateway.MCP) http.Handler {
	//		return mcp.New(mcp.Options{Allow: m.Allow, Compact: m.Compact, Resources: m.Resources})
	//	}
	Tools func(MCP) http.Handler
	// Logger gets what happens; nil means slog.Default().
	Logger *slog.Logger
	// Drain is how long calls may go on when the gateway ends; 0 means 30 s.
	Drain time.Duration
	// Look is how often the registry is asked which services it has; 0 means every second.
	Look time.Duration
}

// Gateway forwards calls to services. Its methods are safe for concurrent use.
type Gateway struct {
	o         Options
	registry  registry.Resolver
	log       *slog.Logger
	server    *anser.Server
	recorder  *record.Recorder // nil: no call is recorded
	methods   *methods
	plan      atomic.Pointer[plan]
	counts    counts
	services  atomic.Int64    // length of upstreams
	transport *http.Transport // to HTTP servers

	applying sync.Mutex // held while a configuration is replaced; guards ended
	ended    bool

	mu        sync.Mutex // guards the fields below
	upstreams map[string]*upstream
}

// counts are the counters of Stats.
type counts struct {
	calls, failed, refused, unreachable, undescribed atomic.Int64
	proxied, proxyFailed, reloads, reloadsRefused    atomic.Int64
}

// New returns a gateway that does nothing until Run or Serve is called.
func New(c *Config, o Options) (*Gateway, error) {
	if c == nil {
		return nil, errors.New("gateway.New: the configuration is nil: pass new(gateway.Config) to serve all services")
	}
	if o.Registry == nil {
		return nil, errors.New("gateway.New: the registry is nil: say in Options.Registry where the services are")
	}
	if _, ok := o.Registry.(registry.Lister); !ok && len(c.Services) == 0 {
		return nil, errors.New("gateway.New: the registry cannot list its services: name them in the configuration (services)")
	}
	g := &Gateway{
		o: o, registry: o.Registry, log: cmp.Or(o.Logger, slog.Default()), transport: newTransport(),
		upstreams: make(map[string]*upstream),
	}
	p, err := newPlan(c, nil, &g.o, g.log)
	if err != nil {
		return nil, err
	}
	g.plan.Store(p)
	g.methods = &methods{gateway: g, services: make(map[*upstream]map[string]*published), served: make(map[string]string)}
	g.methods.offered.Store(new(map[string]*entry))
	if err := g.startRecording(c.Record); err != nil {
		p.close()
		return nil, err
	}
	g.server = anser.NewServer(append(g.serverOptions(c), o.Server...)...)
	if err := g.server.HandleDynamic([]anser.DynamicMethod{g.proxyMethod()}); err != nil {
		p.close()
		g.endRecording()
		return nil, err
	}
	return g, nil
}

// Run listens on the address and serves until ctx ends. Then it drains: the calls that run may end.
func (g *Gateway) Run(ctx context.Context, address string) error {
	l, err := g.server.Listen(address)
	if err != nil {
		return err
	}
	return g.Serve(ctx, l)
}

// Serve is Run with a listener, which it closes. It accepts connections when each service has been
// asked what it serves, at the latest after 5 s: clients may come at once.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wait sync.WaitGroup
	known := make(chan struct{})
	wait.Go(func() { g.lookForServices(following, known) })
	drained := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(drained)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(g.o.Drain, defaultDrain))
		defer cancel()
		if err := g.server.Shutdown(ending); err != nil {
			g.log.Warn("gateway: it has ended before its calls", "error", err)
		}
	})
	select {
	case <-known:
	case <-ctx.Done():
	case <-time.After(patience):
		g.log.Warn("gateway: not all services have said what they serve; those that have are served", "after", patience)
	}
	err := g.server.Serve(l)
	if !unhook() {
		<-drained
	}
	stop()
	wait.Wait()
	g.close()
	if ctx.Err() == nil {
		return err
	}
	return nil
}

const (
	defaultDrain = 30 * time.Second
	patience     = 5 * time.Second // of a gateway that starts, with services that do not answer
)

// close gives back what the configuration in force uses.
func (g *Gateway) close() {
	g.applying.Lock()
	defer g.applying.Unlock()
	g.ended = true
	g.plan.Load().close()
	g.endRecording()
	g.transport.CloseIdleConnections()
}

// lookForServices follows the services of the registry until ctx ends. It closes known when each of
// the first ones has been asked what it serves.
func (g *Gateway) lookForServices(ctx context.Context, known chan<- struct{}) {
	var wait sync.WaitGroup
	stops := make(map[string]func())
	defer func() {
		for _, stop := range stops {
			stop()
		}
		wait.Wait()
	}()
	tick := time.NewTicker(cmp.Or(g.o.Look, time.Second))
	defer tick.Stop()
	missing := make(map[string]int)
	troubled, first := false, true
	for {
		names, err := g.serviceNames(ctx)
		if err != nil && ctx.Err() == nil && !troubled {
			g.log.Warn("gateway: the registry does not list its services; those that are known stay", "error", err)
		}
		if troubled = err != nil; !troubled {
			for _, name := range names {
				if stops[name] == nil {
					stops[name] = g.follow(ctx, &wait, name)
				}
				delete(missing, name)
			}
			if first {
				first = false
				wait.Go(func() { g.awaitAsked(ctx, names, known) })
			}
			for name, stop := range stops {
				if slices.Contains(names, name) {
					continue
				}
				if missing[name]++; missing[name] >= goneAfter {
					stop()
					delete(stops, name)
					delete(missing, name)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// awaitAsked waits until the services have been asked what they serve, and closes known.
func (g *Gateway) awaitAsked(ctx context.Context, names []string, known chan<- struct{}) {
	defer close(known)
	for _, name := range names {
		g.mu.Lock()
		u := g.upstreams[name]
		g.mu.Unlock()
		if u == nil {
			continue // it has left
		}
		select {
		case <-u.asked:
		case <-ctx.Done():
			return
		}
	}
}

// goneAfter is how often in a row a service must be missing from the registry before its methods
// are removed: its instances may all be restarting.
const goneAfter = 60

// serviceNames returns the services to serve.
func (g *Gateway) serviceNames(ctx context.Context) ([]string, error) {
	named := g.plan.Load().config.Services
	if len(named) > 0 {
		return named, nil
	}
	return g.registry.(registry.Lister).Services(ctx)
}

// follow follows a service until the result is called or ctx ends.
func (g *Gateway) follow(ctx context.Context, wait *sync.WaitGroup, name string) (stop func()) {
	u := newUpstream(g, name)
	g.mu.Lock()
	g.upstreams[name] = u
	g.services.Store(int64(len(g.upstreams)))
	g.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	wait.Go(func() {
		defer close(ended)
		u.follow(ctx)
	})
	return func() {
		cancel()
		<-ended
		g.mu.Lock()
		delete(g.upstreams, name)
		g.services.Store(int64(len(g.upstreams)))
		g.mu.Unlock()
		g.methods.remove(u)
		u.close()
	}
}

// Server returns the server of the gateway, for its statistics and for methods of its own.
func (g *Gateway) Server() *anser.Server { return g.server }
