package anser

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/anser-rpc/anser/internal/lastknown"
	"github.com/anser-rpc/anser/registry"
)

// Router routes the calls of one client; package route has one that follows traffic rules. Its
// methods are called for every call, concurrently, and must not block. See [WithRouter].
type Router interface {
	// Route returns the instances that all attempts of the call may use; nil means all instances.
	// md is the metadata of the call, which Route must not keep or change. Equal routes should be
	// the same pointer: the client keeps a picker for each.
	Route(ctx context.Context, method string, md Metadata) *Route
	// Intercepts reports whether the router's interceptor is needed for a call of the method. If it
	// is not, and the client has no other interceptors, a call has no cost for one.
	Intercepts(method string) bool
	// Intercept wraps the calls of the client, inside all of its interceptors. It is called once.
	Intercept(next Func) Func
}

// RulesStatus describes the traffic rules that a client follows.
type RulesStatus struct {
	Version uint64    // version of the rules in force; 0: none
	Applied time.Time // when they came into force
	Saved   bool      // they were loaded from disk
	Trouble error     // why newer ones could not be read, or nil: the old ones stay in force
	// Text are the rules in force in JSON, for people; "" if the router does not say them.
	Text string
	// NotFollowed reports that the registry of the client has traffic rules for its services that
	// the client does not follow, as it has no router: the option route.Rules makes it follow them.
	NotFollowed bool
}

// WithRouter sets the router of the client. start is called once by Dial, which returns its error;
// if the option is given to several clients, start is called once for each. A client with a
// registry waits up to a second for the router's first [RouterContext.Report] before it makes
// calls, so that no call bypasses the rules at the start.
func WithRouter(start func(*RouterContext) (Router, error)) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(start != nil, "anser.WithRouter: the function is nil: leave the option out") &&
			o.wants(o.newRouter == nil, "anser.WithRouter: given twice: a client has one router") {
			o.newRouter = start
		}
	})
}

// rulesPatience is how long a starting client waits for its rules.
const rulesPatience = time.Second

// RouterContext is the client as its router sees it. Its methods are safe for concurrent use.
type RouterContext struct {
	client   *Client
	ready    chan struct{} // closed by the first Report
	snapshot *lastknown.File

	status *RulesStatus // guarded by the mu of the client; nil before the first Report
}

// startRouter creates the client's router.
func (c *Client) startRouter() error {
	c.routerContext = &RouterContext{client: c, ready: make(chan struct{}), snapshot: new(lastknown.File)}
	if c.source.key != "" && !c.o.noSnapshot {
		if s, err := lastknown.New(c.o.snapshotDir, c.source.key+" rules"); err == nil { // else follow logs it
			c.routerContext.snapshot = s
		}
	}
	router, err := c.o.newRouter(c.routerContext)
	if err == nil && router == nil {
		err = fmt.Errorf("the function of anser.WithRouter returned no router")
	}
	c.router = router
	return err
}

// unfollowedRules returns the registry if it keeps traffic rules that the client does not follow,
// or nil.
func (c *Client) unfollowedRules() registry.Store {
	if c.routerContext != nil || c.source.service == "" {
		return nil
	}
	store, _ := c.source.resolver.(registry.Store)
	return store
}

// lookForRules logs once that the service has rules that the client does not follow. It does not
// wait for rules that appear later: one read per client is cheap, one watch is not.
func (c *Client) lookForRules(store registry.Store) {
	ctx, cancel := context.WithTimeout(c.ctx, rulesLook)
	defer cancel()
	doc, err := store.Load(ctx, rulesDocument+c.source.service)
	switch {
	case err != nil:
		c.o.log.Debug("it is unknown whether the service has traffic rules", "target", c.target, "err", err)
	case doc.Revision != 0:
		c.o.log.Warn("the service has traffic rules that this client does not follow: add the option route.Rules() to Dial",
			"target", c.target, "service", c.source.service)
	}
}

const (
	// rulesDocument is the prefix of the names of documents with traffic rules; see package route.
	rulesDocument = "rules/"
	// rulesLook bounds how long lookForRules waits for the registry.
	rulesLook = 10 * time.Second
)

// await waits for the rules, but not for long.
func (s *RouterContext) await() {
	t := time.NewTimer(rulesPatience)
	defer t.Stop()
	select {
	case <-s.ready:
	case <-s.client.ctx.Done():
	case <-t.C:
		s.client.o.log.Warn("the rules have not arrived: calls start without them", "target", s.client.target)
	}
}

// Service returns the name of the service, or "" if the target is a list of addresses.
func (s *RouterContext) Service() string { return s.client.source.service }

// Store returns the registry if it keeps documents, or nil.
func (s *RouterContext) Store() registry.Store {
	store, _ := s.client.source.resolver.(registry.Store)
	return store
}

// Logger returns the logger of the client.
func (s *RouterContext) Logger() *slog.Logger { return s.client.o.log }

// Go runs f on a goroutine that Close waits for; ctx ends with Close.
func (s *RouterContext) Go(f func(ctx context.Context)) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if !s.client.closed {
		s.client.wg.Go(func() { f(s.client.ctx) })
	}
}

// Adjust sets a function that the client applies to the instances that its registry lists; nil
// leaves them as they are. It may change weight, state and tags, and nothing else. An instance
// that is not up gets no further calls, but finishes the calls that it has. The function must not
// block. It is called for the current list before Adjust returns.
func (s *RouterContext) Adjust(f func(registry.Instance) registry.Instance) {
	s.client.cluster.Adjust(f)
}

// Report sets the rules in force, for [Client.Status].
func (s *RouterContext) Report(st RulesStatus) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.status == nil {
		close(s.ready)
	}
	s.status = &st
}

// Save stores data on disk, next to the saved list of instances, for a process that starts while
// the registry is down. Without a registry, or with [NoSnapshot], it does nothing.
func (s *RouterContext) Save(data []byte) error { return s.snapshot.Write(data) }

// Saved returns the data of the last Save, even by an earlier process, or nil.
func (s *RouterContext) Saved() ([]byte, error) { return s.snapshot.Read() }

// intercepts reports whether a call of the method goes through interceptors.
func (c *Client) intercepts(method string) bool {
	return c.chain != nil && (len(c.o.interceptors) > 0 || c.router.Intercepts(method))
}

// route asks the router for the route of a call.
func (c *Client) route(ctx context.Context, method string, md Metadata) (route *Route, fault *Error) {
	defer func() {
		if p := recover(); p != nil {
			fault = failure(Internal, NotSent, PhasePick, nil, "the router panicked: %v", p)
		}
	}()
	return c.router.Route(ctx, method, md), nil
}
