// Package demo shows Anser at work on one machine: a registry, three services with three instances
// each, every instance a process of its own, and traffic through them while a script of steps is
// repeated: instances are killed, restarted, slowed down and paused, one of another version comes
// and goes, and the registry is stopped.
package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

// Options configures the demo.
type Options struct {
	Listen  string        // address of the registry
	Serve   string        // address of the gateway
	Console string        // loopback address of the console; "": none
	Data    string        // directory of the registry; "": a temporary one
	Record  string        // folder of the recordings of calls; "": a temporary one
	Callers int           // per service
	Rate    float64       // calls per second per service; 0: as many as the callers make
	Every   time.Duration // interval between the beginnings of two steps; 0: none
	Steps   []string      // names of steps; none: all
	For     time.Duration // duration of the traffic; 0: until the context is done

	// ServeElsewhere takes a free port if that of Serve is taken.
	ServeElsewhere bool
	// RPCX is the program with the members of rpcx. Without it, the one next to the command is
	// used, if it is there.
	RPCX string
	// Tools offers methods to agents, for the gateway.
	Tools func(gateway.MCP) http.Handler
}

// View presents the demo. Its methods are called by one goroutine at a time.
type View interface {
	// Event is called for each event.
	Event(e Event)
	// Show is called with the present state, about once per second and at the end.
	Show(s Snapshot)
}

// Event is an event of an instance, or with an empty Instance of the demo.
type Event struct {
	Kind     string // one word: "killed"
	Instance string
	Text     string
}

const (
	startBound = 30 * time.Second // for starting the registry and the processes
	showEvery  = time.Second
	// leaseTTL is how long the registry keeps an instance without renewal: longer than clients
	// need to notice by themselves that it is paused.
	leaseTTL = 10 * time.Second
	// usualPage is the address of the demo's admin page, if it is free.
	usualPage = "127.0.0.1:8971"
)

// Run runs the demo until its time is over or ctx is done. Everything it started has ended when it
// returns. Failed calls are not an error; a failure of the demo itself is.
func Run(ctx context.Context, o Options, view View) (sum Summary, err error) {
	dir, err := os.MkdirTemp("", "anser-demo-")
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.Data == "" {
		o.Data = filepath.Join(dir, "registry")
	}
	if o.Record == "" {
		o.Record = filepath.Join(dir, "calls")
	}
	files := filepath.Join(dir, "files")
	if err := writeFiles(files); err != nil {
		return Summary{}, err
	}
	store, err := startStore(ctx, o)
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	// A registry owned by the store would end with it during an outage.
	endpoint := store.member.Endpoint()
	reg, err := etcd.Dial([]string{endpoint}, etcd.TTL(leaseTTL))
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, reg.Close()) }()
	d := &demo{o: o, url: "etcd://" + endpoint, rules: reg, store: store, figures: newFigures(), events: make(chan Event, 16)}
	d.health = &health{tell: d.tell}
	d.fleet = newFleet(d.url, o.Record, files, reg, d.tell)
	self := watchOptions{service: "demo", id: "demo", listen: usualPage, failed: d.lost}
	if d.watched, err = watch(self, admin.Handle(targetsPath, prometheus.Targets(reg))); err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, d.watched.close()) }()
	entrance, where, err := openEntrance(reg, d.watched.calls, o)
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, entrance.close()) }()
	d.address = entrance.address
	shown, err := openConsole(ctx, reg, d.url, d.watched.url, filepath.Join(dir, "audit.jsonl"), o.Console)
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, shown.close()) }()
	d.console = shown.url
	type result struct {
		sum Summary
		err error
	}
	done := make(chan result, 1)
	go func() {
		sum, err := d.perform(ctx, where, entrance.await)
		done <- result{sum, err}
	}()
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	for {
		select {
		case e := <-d.events:
			view.Event(e)
			view.Show(d.snapshot())
		case now := <-tick.C:
			d.figures.turn(now)
			view.Show(d.snapshot())
		case r := <-done:
			for len(d.events) > 0 {
				view.Event(<-d.events)
			}
			last := d.snapshot()
			last.Final = true
			view.Show(last)
			return r.sum, r.err
		}
	}
}

// demo is one run.
type demo struct {
	o       Options
	url     string
	fleet   *fleet
	rules   registry.Store // of all services
	store   *store         // used by perform and its goroutines
	figures *figures
	health  *health
	traffic *traffic   // set before the first step
	address string     // of the entrance; set before the first snapshot
	console string     // URL of the console, or ""; set before the first snapshot
	watched *watched   // this process, with the callers and the entrance
	events  chan Event // read by Run until perform has returned

	mu      sync.Mutex // guards the fields below
	rpcx    []Row      // the members of rpcx
	debugAt string     // of the traffic
	step    string     // current step, or ""
	results []StepResult
}

func (d *demo) tell(e Event) { d.events <- e }

// lost is told when the collector begins to fail.
func (d *demo) lost(err error) {
	d.tell(Event{Kind: "traces", Text: "are not exported: " + err.Error()})
}

// perform runs the demo, from the first process to the last.
func (d *demo) perform(ctx context.Context, where string, known func(context.Context) error) (Summary, error) {
	defer d.fleet.close()
	d.tell(Event{Kind: "registry", Text: d.url})
	d.tell(Event{Kind: "serves", Text: where})
	d.tell(Event{Kind: "admin", Text: "the admin page of the callers is at " + d.watched.url + "; instances announce theirs"})
	if d.console != "" {
		d.tell(Event{Kind: "console", Text: "the system is on a page at " + d.console})
	}
	d.tell(Event{Kind: "metrics", Text: "Prometheus finds the instances at " + d.watched.url + targetsPath + ", with /" + metricsPath + " at their own ports"})
	d.tell(Event{Kind: "records", Text: "one of 5 calls of each instance, in a folder of its own in " + d.o.Record})
	if err := d.fleet.start(ctx); err != nil {
		if ctx.Err() != nil { // interrupted: not an error
			return d.summary(), nil
		}
		return Summary{}, err
	}
	if err := known(ctx); err != nil {
		return Summary{}, err
	}
	d.tell(Event{Kind: "ready", Text: fmt.Sprintf("%d instances of %d services are up", len(d.fleet.instances), len(services))})
	traffic, err := startTraffic(d.url, d.o, d.watched.calls, d.fleet, d.figures, d.health.heard)
	if err != nil {
		return Summary{}, err
	}
	d.tell(Event{Kind: "traffic", Text: "its calls are served at " + traffic.debugAt + ": anser rules dry-run --from, anser explain --from"})
	d.traffic = traffic
	d.mu.Lock()
	d.debugAt = traffic.debugAt
	d.mu.Unlock()
	d.figures.start(time.Now())
	members, err := d.withRPCX(ctx)
	if err != nil {
		traffic.stop()
		if ctx.Err() != nil {
			return d.summary(), nil
		}
		return Summary{}, err
	}
	disturbances, stop := d.untilLate(ctx)
	disturbed := make(chan error, 1)
	go func() { disturbed <- d.play(disturbances, ctx) }()
	err = d.wait(ctx, disturbed)
	stop()
	if err == nil {
		err = <-disturbed
	}
	err = errors.Join(err, members.stop())
	traffic.stop()
	d.figures.stop(time.Now())
	if ctx.Err() != nil {
		err = nil
	}
	return d.summary(), errors.Join(err, d.fleet.failure())
}

// untilLate returns a context for the disturbances: none starts so late that the demo must wait
// for its end.
func (d *demo) untilLate(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.o.For > 0 {
		return context.WithTimeout(ctx, d.o.For-d.o.Every/2)
	}
	return context.WithCancel(ctx)
}

// wait returns when the time is over, ctx is done, or the disturbances failed.
func (d *demo) wait(ctx context.Context, disturbed chan error) error {
	var over <-chan time.Time
	if d.o.For > 0 {
		t := time.NewTimer(d.o.For)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-over:
	case <-ctx.Done():
	case err := <-disturbed:
		if err != nil {
			return err
		}
		disturbed <- nil
		select { // there are no disturbances
		case <-over:
		case <-ctx.Done():
		}
	}
	return nil
}
