// Package demo shows Anser at work on one machine: a registry, three services with three instances
// each, every instance a process of its own, and traffic through them while a script of steps goes
// round: instances are killed, restarted and slowed down, and the registry goes away.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry/etcd"
)

// Options say how the demo runs.
type Options struct {
	Listen  string        // address of the registry
	Data    string        // directory of the registry; "": a temporary one
	Callers int           // for each service
	Rate    float64       // calls a second for each service; 0: as many as the callers make
	Every   time.Duration // between the beginnings of two steps; 0: none
	Steps   []string      // names of steps; none: all
	For     time.Duration // how long there is traffic; 0: until the context is done
}

// View shows the demo to somebody. Its methods are called by one goroutine at a time.
type View interface {
	// Event tells that something happened.
	Event(e Event)
	// Show tells how things are, about once a second, and in the end.
	Show(s Snapshot)
}

// Event is something that happened to an instance, or with an empty Instance to the demo.
type Event struct {
	Kind     string // one word: "killed"
	Instance string
	Text     string
}

const (
	startBound = 30 * time.Second // for the registry and the processes to be there
	showEvery  = time.Second
	leaseTTL   = 3 * time.Second // how long the registry keeps an instance that was killed
)

// Run runs the demo until its time is over or ctx is done. Whatever it started has ended when it
// returns. Calls that failed are no error; that the demo itself did not work is one.
func Run(ctx context.Context, o Options, view View) (sum Summary, err error) {
	dir, err := os.MkdirTemp("", "anser-demo-")
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.Data == "" {
		o.Data = filepath.Join(dir, "registry")
	}
	store, err := startStore(ctx, o)
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	// A registry of the store's own would end with it, when it is away for a while.
	endpoint := store.member.Endpoint()
	reg, err := etcd.Dial([]string{endpoint}, etcd.TTL(leaseTTL))
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, reg.Close()) }()
	d := &demo{o: o, url: "etcd://" + endpoint, store: store, figures: newFigures(), events: make(chan Event, 16)}
	d.fleet = newFleet(d.url, reg, d.tell)
	type result struct {
		sum Summary
		err error
	}
	done := make(chan result, 1)
	go func() {
		sum, err := d.perform(ctx)
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
	store   *store // used by perform and what it started
	figures *figures
	events  chan Event // read by Run until perform has returned

	mu      sync.Mutex // guards what follows
	step    string     // what goes on, or ""
	results []StepResult
}

func (d *demo) tell(e Event) { d.events <- e }

// perform is what happens, from the first process to the last.
func (d *demo) perform(ctx context.Context) (Summary, error) {
	defer d.fleet.close()
	d.tell(Event{Kind: "registry", Text: d.url})
	if err := d.fleet.start(ctx); err != nil {
		if ctx.Err() != nil { // interrupted: not an error
			return d.summary(), nil
		}
		return Summary{}, err
	}
	d.tell(Event{Kind: "ready", Text: fmt.Sprintf("%d instances of %d services are up", len(d.fleet.instances), len(services))})
	traffic, err := startTraffic(d.url, d.o, d.fleet, d.figures)
	if err != nil {
		return Summary{}, err
	}
	d.tell(Event{Kind: "traffic", Text: "its calls are told at " + traffic.debugAt + ": anser rules dry-run --from, anser explain --from"})
	d.figures.start(time.Now())
	disturbances, stop := d.untilLate(ctx)
	disturbed := make(chan error, 1)
	go func() { disturbed <- d.play(disturbances, ctx) }()
	err = d.wait(ctx, disturbed)
	stop()
	if err == nil {
		err = <-disturbed
	}
	traffic.stop()
	d.figures.stop(time.Now())
	if ctx.Err() != nil {
		err = nil
	}
	return d.summary(), errors.Join(err, d.fleet.failure())
}

// untilLate returns a context for the disturbances: none begins so late that the demo has to wait
// for its end.
func (d *demo) untilLate(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.o.For > 0 {
		return context.WithTimeout(ctx, d.o.For-d.o.Every/2)
	}
	return context.WithCancel(ctx)
}

// wait returns when the time is over, or ctx done, or the disturbances failed.
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
		select { // there are none
		case <-over:
		case <-ctx.Done():
		}
	}
	return nil
}
