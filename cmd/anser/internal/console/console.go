// Package console serves a whole system on one page: what its processes do now, and what they did
// in the last hour. It reads their admin pages and the registry, and keeps everything in memory.
// Any number of viewers costs the processes as much as one.
package console

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/events"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/history"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/longhistory"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/internal/printable"
)

const (
	// lookFor is how long a viewer is said to look after a request. It is longer than the time
	// between two pings of a viewer.
	lookFor = 15 * time.Second
	// attendFor is how long a service is read every second after a change, if a viewer looks.
	attendFor  = 10 * time.Second
	pruneEvery = time.Minute
	firstShown = 50 // changes that a viewer gets at first
)

// Options configure a [Console].
type Options struct {
	Registries []collect.Source
	// Pages are addresses of admin pages in addition to the ones of instances.
	Pages []string
	// Token is for admin pages that need one.
	Token string
	// Client reads the admin pages; nil means a client of the console.
	Client *http.Client
	// Guard checks whether a request may look at the system. It must be set.
	Guard func(http.Handler) http.Handler
	// Routes are further handlers by their patterns of http.ServeMux. They check requests
	// themselves.
	Routes map[string]http.Handler
	// Page serves the files of the page; nil means none.
	Page http.Handler
	// Arena says that Routes has the report of the arena.
	Arena bool
	// Long has the series of more than an hour; nil means none.
	Long *longhistory.Source
	// CPU returns the processor time that the console has used; nil means that it is not known.
	CPU    func() time.Duration
	Logger *slog.Logger
}

// Console is the console of a system. Its methods are safe for concurrent use.
type Console struct {
	o         Options
	collector *collect.Collector
	history   *history.History
	hub       events.Hub
	changes   changeLog
	effects   effects
	conns     connCache
	samples   sampleCache
	live      liveCalls
	mux       *http.ServeMux
	patterns  []string // of mux
	started   time.Time
	cancel    context.CancelFunc
	ctx       context.Context // ends with Close
	wg        sync.WaitGroup

	mu   sync.Mutex // guards the fields below, and the order of a first event and the updates
	now  *snapshot
	sent sent
	last time.Time // of the last pruning
}

// New starts a console. Close ends it.
func New(o Options) (*Console, error) {
	if o.Guard == nil {
		return nil, errors.New("console: there is no guard: set Options.Guard")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Console{o: o, history: history.New(), started: time.Now(), mux: http.NewServeMux()}
	c.collector = collect.New(collect.Options{Registries: o.Registries, Pages: o.Pages, Token: o.Token, Client: o.Client, CPU: o.CPU, Logger: o.Logger})
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.now = build(&collect.Round{Time: c.started})
	c.live.start(c)
	c.routes()
	c.wg.Go(func() { c.collector.Run(c.ctx, c.round) })
	return c, nil
}

// Close ends the viewers and everything that the console follows, and waits for it.
func (c *Console) Close() error {
	c.cancel()
	c.hub.Close()
	c.wg.Wait()
	return nil
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.mux.ServeHTTP(w, r) }

// Patterns returns the patterns of all routes, as http.ServeMux takes them.
func (c *Console) Patterns() []string { return slices.Clone(c.patterns) }

// Note adds a change that the console has made to what viewers see.
func (c *Console) Note(change model.Change) {
	if change.Time.IsZero() {
		change.Time = time.Now().UTC()
	}
	c.changes.add(change)
}

// Service returns the present figures of a service.
func (c *Console) Service(name string) (model.Service, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.now.services[name]
	if v == nil {
		return model.Service{}, false
	}
	return v.Service, true
}

// Instances returns the instances of a service, or of all services if it is "".
func (c *Console) Instances(service string) []model.Instance {
	c.mu.Lock()
	now := c.now
	c.mu.Unlock()
	return now.instancesOf(service, math.MaxInt)
}

// Calls returns the latest recorded calls to a service, or to all if it is "". kind is "failed" or
// "slow".
func (c *Console) Calls(service, kind string) []model.Call {
	c.mu.Lock()
	now := c.now
	c.mu.Unlock()
	return now.calls(callFilter{service: service, kind: kind})
}

// Follow makes the console read a service every second for d, whatever that costs.
func (c *Console) Follow(service string, d time.Duration) { c.collector.Follow(service, d) }

// Reads returns how many admin pages were asked so far.
func (c *Console) Reads() int64 { return c.collector.Reads() }

// round takes what a round of readings says.
func (c *Console) round(r *collect.Round) {
	if c.ctx.Err() != nil {
		return
	}
	s := build(r)
	s.record(c.history)
	c.effects.add(s, c.current())
	s.keepOrders(c.current())
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.now
	if len(before.system.Registries) == 0 && len(before.round.Processes) == 0 {
		before = nil // the first round
	}
	fresh := s.since(before)
	for i := range fresh {
		if name := fresh[i].Service; s.services[name] != nil {
			c.collector.Attend(name, attendFor)
		}
	}
	c.changes.add(fresh...)
	c.now = s
	c.publishLocked()
	if r.Time.Sub(c.last) > pruneEvery {
		c.last = r.Time
		c.history.Prune(r.Time)
	}
}

// record adds a snapshot to the history.
func (s *snapshot) record(h *history.History) {
	add := func(kind, a, b string, calls *collect.Calls) {
		h.Add(history.Key{Kind: kind, A: a, B: b}, s.round.Time, s.round.Step, calls)
	}
	for name, v := range s.services {
		if !v.fresh {
			continue // nothing is known: a gap
		}
		add(history.OfService, name, "", &v.calls)
		for method, m := range v.methods {
			add(history.OfMethod, name, method, &m.calls)
		}
		for _, in := range v.instances {
			if p := in.process; in.fresh && s.readNow(p) {
				h.Add(history.Key{Kind: history.OfInstance, A: name, B: in.ID}, s.round.Time, max(s.round.Step, p.Window.Round(time.Second)), &in.calls)
			}
		}
	}
	for key, e := range s.edges {
		if e.fresh {
			add(history.OfEdge, key.from, key.to, &e.calls)
		}
	}
}

// encode returns JSON that a terminal can print. What the console sends can be encoded.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		data, _ = json.Marshal(respond.Error{Text: "the answer cannot be encoded: " + err.Error()})
	}
	return printable.JSON(data)
}
