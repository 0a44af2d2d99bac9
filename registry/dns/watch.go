package dns

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

const (
	retryMin  = time.Second // after the first failure
	retryMax  = 30 * time.Second
	hurryGap  = time.Second // between two lookups, however many hints arrive
	hurried   = time.Minute // how long lookups are more frequent after a hint
	probeTime = time.Second // for a connection to an instance of a better priority
	probes    = 3           // instances per priority that are tried
)

// Watch implements registry.Resolver. It looks up the records, and again when the lowest of their
// TTLs expires, or a little before, to spread the queries of many clients. A name that does not
// exist or has no such records is an empty list; a lookup that fails on every server is trouble.
// Records without a valid address are reported as trouble and left out.
func (r *Resolver) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if err := registry.CheckService(service); err != nil {
		return err
	}
	if err := checkName(r.pattern.name(service)); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.ctx.Err() != nil {
		return registry.ErrClosed
	}
	if trouble == nil {
		trouble = func(error) {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(registry.ErrClosed) })()
	w := &watch{resolver: r, service: service}
	hurry := r.join(w)
	defer r.leave(w)
	return w.run(ctx, hurry, update, trouble)
}

func (r *Resolver) join(w *watch) <-chan struct{} {
	hurry := make(chan struct{}, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches[w] = hurry
	return hurry
}

func (r *Resolver) leave(w *watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watches, w)
}

// watch is the state of one Watch; owned by its goroutine.
type watch struct {
	resolver *Resolver
	service  string
	fallen   bool      // instances of the first priority cannot be reached
	hurried  time.Time // time of the last hint
	failures int       // in a row
}

func (w *watch) run(ctx context.Context, hurry <-chan struct{}, update func([]registry.Instance), trouble func(error)) error {
	var last []registry.Instance
	var told string // the last reported problem with some of the records
	for current := false; ; {
		looked := time.Now()
		f, err := w.resolver.lookup(ctx, w.service)
		var list []registry.Instance
		if err == nil {
			list = w.choose(ctx, f.tiers)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		problem := ""
		if f.problem != nil {
			problem = f.problem.Error()
		}
		switch {
		case err != nil:
			w.failures++
			current = false
			trouble(err)
		case f.problem != nil && problem != told:
			current = false
			trouble(f.problem)
			fallthrough
		default:
			w.failures = 0
			if !current || !registry.Equal(list, last) {
				update(list)
				current, last = true, list
			}
		}
		told = problem
		if err := w.pause(ctx, hurry, looked, w.delay(f.ttl)); err != nil {
			return err
		}
	}
}

// delay returns how long to wait before the next lookup.
func (w *watch) delay(ttl time.Duration) time.Duration {
	r := w.resolver
	d := min(max(ttl, r.minTTL), r.maxTTL)
	switch {
	case w.failures > 0:
		d = min(retryMin<<min(w.failures-1, 5), retryMax)
	case w.fallen || !w.hurried.IsZero() && time.Since(w.hurried) < hurried:
		d = r.minTTL
	}
	return d - rand.N(d/10+1)
}

// pause waits for the next lookup, or for a hint.
func (w *watch) pause(ctx context.Context, hurry <-chan struct{}, looked time.Time, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-hurry:
			w.hurried, w.fallen = time.Now(), true
			timer.Reset(min(d, max(0, hurryGap-time.Since(looked))))
		}
	}
}

// choose makes one list of the priorities. All instances are in it, but only those of one priority
// want calls: the first one, unless a hint came and none of its instances could be reached.
func (w *watch) choose(ctx context.Context, tiers [][]registry.Instance) []registry.Instance {
	active := 0
	if w.fallen = w.fallen && len(tiers) > 1; w.fallen {
		active = reachable(ctx, tiers)
		w.fallen = active != 0
	}
	var list []registry.Instance
	for i, tier := range tiers {
		for _, in := range tier {
			if active >= 0 && i != active {
				in.State = registry.Draining
			}
			list = append(list, in)
		}
	}
	registry.Sort(list)
	return list
}

// reachable returns the first priority with an instance that accepts connections, or -1.
func reachable(ctx context.Context, tiers [][]registry.Instance) int {
	for i, tier := range tiers {
		some := slices.Clone(tier)
		rand.Shuffle(len(some), func(a, b int) { some[a], some[b] = some[b], some[a] })
		if connects(ctx, some[:min(len(some), probes)]) {
			return i
		}
	}
	return -1
}

// connects reports whether one of the instances accepts a connection.
func connects(ctx context.Context, instances []registry.Instance) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var wg sync.WaitGroup
	good := make(chan struct{}, len(instances))
	for _, in := range instances {
		wg.Go(func() {
			var dialer net.Dialer
			if conn, err := dialer.DialContext(ctx, "tcp", in.Address); err == nil {
				conn.Close()
				good <- struct{}{}
				cancel()
			}
		})
	}
	wg.Wait()
	return len(good) > 0
}
