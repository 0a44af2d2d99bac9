// Package collect finds the processes of a system in its registry, and reads their admin pages
// again and again. What a process says is bounded, and never trusted to be consistent.
package collect

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/registry"
)

// The times between two rounds, in each of which all pages are read if the budget allows that.
const (
	Watched   = time.Second      // while a viewer looks; see [Slowest] for large systems
	Unwatched = 10 * time.Second // otherwise
	// Rarest is the longest time between two readings of a page while no viewer looks.
	Rarest = mostUnwatched * Unwatched
)

const (
	atOnce       = 64 // pages that are read at the same time
	maxProcesses = 5000
	maxServices  = 2000
	// watchedBound and unwatchedBound are how long pages may take to answer in a round.
	watchedBound   = 900 * time.Millisecond
	unwatchedBound = 3 * time.Second
	// maxPause is the longest time for which a page that does not answer is not asked again.
	maxPause = 8 * time.Second
)

// Options configure a [Collector].
type Options struct {
	Registries []Source
	// Pages are addresses of admin pages in addition to the ones of instances.
	Pages []string
	// Token is for admin pages that need one.
	Token string
	// Client reads the pages; nil means a client of the collector.
	Client *http.Client
	// CPU returns the processor time that the console has used. nil means that it is not known, as
	// in a process that does more than the console; then the cost of readings is assumed.
	CPU    func() time.Duration
	Logger *slog.Logger
}

// Source is a registry.
type Source struct {
	Name, Kind string
	Resolver   registry.Resolver
	// Services are the services that are followed; none means all that the registry lists.
	Services []string
}

// Collector reads a system. Its methods are safe for concurrent use.
type Collector struct {
	o      Options
	reader *admin.Reader
	idle   func()
	stores []*source
	reads  atomic.Int64 // pages that were asked
	lost   lostHosts

	detailed detailed    // that viewers see
	attended detailed    // that have changed, or whose canary runs
	sparing  atomic.Bool // registries are asked less often

	// The goroutine of the rounds owns the fields below.
	turn   int
	budget budget
	plan   plan
	soon   bool // the next round must not be late

	looking atomic.Int64 // end of the viewers' interest, as monotonic time since began
	began   time.Time
	wake    chan struct{}
	urgent  chan struct{} // a registry has got into trouble, or out of it

	mu        sync.Mutex // guards the fields below
	processes map[string]*process
	slots     int // that were given to processes
}

// New returns a collector of a system. Nothing happens before Run.
func New(o Options) *Collector {
	c := &Collector{o: o, began: time.Now(), wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1), processes: make(map[string]*process)}
	c.budget.used, c.lost.told = o.CPU, func() { signal(c.wake) }
	client := o.Client
	if client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost, transport.MaxIdleConns = atOnce, maxProcesses
		transport.Proxy, transport.DialContext = nil, c.lost.dial
		transport.DisableCompression = true // pages are not compressed
		client = &http.Client{Transport: transport, CheckRedirect: noRedirect}
	}
	bounded := *client
	bounded.Transport = &limited{next: cmp.Or(client.Transport, http.DefaultTransport), most: maxPage}
	c.reader, c.idle = &admin.Reader{Client: &bounded, Token: o.Token}, client.CloseIdleConnections
	for _, s := range o.Registries {
		c.stores = append(c.stores, newSource(s, c.askEvery, func() { signal(c.urgent) }, c.tell))
	}
	return c
}

// noRedirect keeps a page from sending the reader, and its token, elsewhere.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Reader returns a reader of pages with the limits of the collector.
func (c *Collector) Reader() *admin.Reader { return c.reader }

// Reads returns how many pages were asked so far.
func (c *Collector) Reads() int64 { return c.reads.Load() }

// Look makes the collector read every second for a while, as far as the budget allows. It does not
// block.
func (c *Collector) Look(d time.Duration) {
	now := time.Since(c.began)
	until := int64(now + d)
	for {
		old := c.looking.Load()
		if old >= until {
			return
		}
		if !c.looking.CompareAndSwap(old, until) {
			continue
		}
		if old > int64(now) {
			return
		}
		break
	}
	signal(c.wake) // a viewer has come
	for _, s := range c.stores {
		signal(s.wake)
	}
}

// tell makes a round that says what a registry has said, within a second if a viewer looks.
func (c *Collector) tell() {
	if c.Looking() {
		signal(c.wake)
	}
}

// askEvery returns the time between two questions to a registry for the names of its services.
func (c *Collector) askEvery(trouble bool) time.Duration {
	if !c.Looking() || c.sparing.Load() && !trouble {
		return askRarely
	}
	return askEvery
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// LookAt does the same for a service that a viewer sees in detail.
func (c *Collector) LookAt(service string, d time.Duration) {
	c.detailed.add(service, time.Now().Add(d), maxDetailed)
	c.Look(d)
}

// Follow makes the collector read a service every second for a while, whatever the budget is.
func (c *Collector) Follow(service string, d time.Duration) {
	c.attended.add(service, time.Now().Add(d), maxDetailed)
	c.Look(d)
}

// Attend makes the processes of a service that has changed be read in each round for a while,
// whatever the budget is. It makes no rounds.
func (c *Collector) Attend(service string, d time.Duration) {
	c.attended.add(service, time.Now().Add(d), maxAttended)
}

// Looking reports whether a viewer looks.
func (c *Collector) Looking() bool { return c.looking.Load() > int64(time.Since(c.began)) }

// Run reads until ctx is done. It calls told after each round of readings, from one goroutine. What
// a round says is not changed afterwards.
func (c *Collector) Run(ctx context.Context, told func(*Round)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer c.idle()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, s := range c.stores {
		wg.Go(func() { s.follow(ctx) })
	}
	last := time.Now().Add(-time.Hour)
	whole := last                      // the last regular round
	tick := time.NewTimer(Watched / 4) // the registries come first
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.urgent:
			if !last.Before(c.began) {
				told(c.round(ctx, time.Now(), 0, false))
			}
			continue
		case <-c.wake: // a viewer has come, a process may have ended, or a registry has said more
			if wait := time.Until(last.Add(Watched)); wait > 0 {
				tick.Reset(wait)
				continue
			}
		}
		began := time.Now()
		regular := began.Sub(whole) > c.pause()-Watched/2
		told(c.round(ctx, began, began.Sub(last), regular))
		if last = began; regular {
			whole = began
		}
		tick.Reset(max(time.Until(whole.Add(c.pause())), time.Until(last.Add(Watched)), Watched/10))
	}
}

// Round is what is known after a reading of all pages.
type Round struct {
	Time time.Time
	// Step is the time since the last round, and 0 if it was no regular one.
	Step time.Duration
	// Interval is the longest time between two readings of a process, and Period the time between
	// two rounds, unless something happens.
	Interval, Period time.Duration

	Sources   []SourceState
	Services  []ServiceState // sorted by name
	Processes []*Process     // sorted by address
}

// round reads all pages that are due, unless step is 0: then it says what they said last.
func (c *Collector) round(ctx context.Context, now time.Time, step time.Duration, regular bool) *Round {
	r := &Round{Time: now, Step: step}
	if step > 2*Unwatched {
		r.Step = 0
	}
	for _, s := range c.stores {
		state, services := s.state()
		r.Sources = append(r.Sources, state)
		r.Services = mergeServices(r.Services, services)
	}
	slices.SortFunc(r.Services, func(a, b ServiceState) int { return cmp.Compare(a.Name, b.Name) })
	list := c.known(r.Services)
	if step > 0 {
		c.read(ctx, list, regular)
		if regular {
			c.decide(list, time.Now()) // by what was just read, as the calls may have become more
		}
	}
	r.Interval, r.Period = c.plan.interval(), c.plan.period
	if ctx.Err() != nil {
		return r
	}
	owners := make(map[string]*process)
	for _, p := range list {
		if id := p.view.ID; id != "" {
			if o := owners[id]; o == nil || p.since.Before(o.since) {
				owners[id] = p
			}
		}
	}
	for _, p := range list {
		v := p.view
		v.Double = v.ID != "" && owners[v.ID] != p
		r.Processes = append(r.Processes, &v)
	}
	return r
}

// mergeServices adds the services of another registry. The first one that has a service counts.
func mergeServices(list, more []ServiceState) []ServiceState {
	earlier := make(map[string]bool, len(list))
	for i := range list {
		earlier[list[i].Name] = true
	}
	for _, s := range more {
		if !earlier[s.Name] {
			list = append(list, s)
		}
	}
	return list
}

// known returns the processes with a page, sorted by address.
func (c *Collector) known(services []ServiceState) []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := make(map[string]bool)
	note := func(address string) *process {
		p := c.processes[address]
		if p == nil {
			if len(c.processes) >= maxProcesses {
				return nil
			}
			c.slots++
			p = newProcess(address, c.slots)
			c.processes[address] = p
		}
		if !seen[address] {
			seen[address] = true
			p.found = nil
		}
		return p
	}
	for _, a := range c.o.Pages {
		note(a)
	}
	for _, s := range services {
		for _, in := range s.Instances {
			if at := in.Tags[admin.Tag]; at != "" && len(at) <= maxAddress {
				if p := note(at); p != nil {
					p.found = append(p.found, Place{s.Name, in.Key()})
				}
			}
		}
	}
	var list []*process
	for a, p := range c.processes {
		if !seen[a] {
			delete(c.processes, a)
			continue
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *process) int { return cmp.Compare(a.address, b.address) })
	return list
}

// maxAddress is the maximum length of the address of a page.
const maxAddress = 1000

// read asks the pages that are due. All at once takes a third less of the processor than one after
// the other: a process that waits for each answer wakes for each.
func (c *Collector) read(ctx context.Context, list []*process, regular bool) {
	bound := unwatchedBound
	if c.Looking() {
		bound = watchedBound
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	due := c.due(list, time.Now(), regular)
	var wg sync.WaitGroup
	next := make(chan *process)
	for range min(atOnce, len(due)) {
		wg.Go(func() {
			for p := range next {
				c.reads.Add(1)
				id := p.view.ID
				if p.read(ctx, c.reader); p.lost && p.view.Error == "" && p.view.ID == id {
					c.lost.answered(p.host, p.asked)
				}
			}
		})
	}
	for _, p := range due {
		if ctx.Err() != nil {
			break // they are the first ones of the next round
		}
		next <- p
	}
	close(next)
	wg.Wait()
}
