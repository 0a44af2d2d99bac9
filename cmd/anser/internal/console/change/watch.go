package change

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/operate"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

const (
	watchEvery  = time.Second
	followAgain = 5 * time.Second // after the registry has not let the console follow the list
	tolerated   = 3               // looks in a row at which a bound may be passed
	fewCalls    = 1               // a second: fewer say nothing
	blindFor    = time.Minute
)

// watched is what a console remembers of a canary.
type watched struct {
	bad   int       // looks in a row
	known time.Time // when figures were last known
}

// Run watches the canaries until ctx is done: one whose bound is passed gets no calls any more.
// Each console that may change something watches all of them, so that one takes over when another
// one ends. While none runs, it waits for the registry to say that one does.
func (c *Changes) Run(ctx context.Context) {
	if c.d.Store == nil || c.d.Log == nil {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	changed := make(chan struct{}, 1)
	wg.Go(func() { c.followCanaries(ctx, changed) })
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	seen := make(map[string]*watched)
	var list *canaries // nil: it must be read
	for {
		var look <-chan time.Time
		if list == nil || list.run() {
			look = tick.C
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			list = nil
			continue
		case <-look:
		}
		if list == nil {
			l, err := c.loadCanaries(ctx)
			if err != nil {
				continue
			}
			list = l
		}
		for name, q := range list.list {
			if q.State != running {
				delete(seen, name)
				continue
			}
			if seen[name] == nil {
				seen[name] = &watched{known: time.Now()}
			}
			if c.look(ctx, q, seen[name]) {
				list = nil // it has changed
				break
			}
		}
	}
}

// followCanaries says when the list of canaries may have changed, until ctx is done.
func (c *Changes) followCanaries(ctx context.Context, changed chan<- struct{}) {
	say := func(registry.Document) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for {
		c.d.Store.Follow(ctx, canariesName, say, func(error) {}) //nits:ignore errcheck the next one says the same
		select {
		case <-ctx.Done():
			return
		case <-time.After(followAgain):
			say(registry.Document{})
		}
	}
}

// look looks at a canary once, and reports whether it has changed it.
func (c *Changes) look(ctx context.Context, q *canary, w *watched) bool {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	now := time.Now()
	if !now.Before(q.Until) {
		c.conclude(ctx, q, ended, "its time is over")
		return true
	}
	d, err := route.Load(ctx, c.d.Store, q.Service)
	if err != nil {
		return false // clients keep their rules, and the end in them
	}
	if rule, ok := operate.Canary(&d.Rules); (!ok || rule.Percent == 0) && now.Sub(q.Changed) > patient {
		c.conclude(ctx, q, ended, "its rule was removed")
		return true
	}
	why, known := q.judge(&d.Rules, c.figures(q.Service))
	if known {
		w.known = now
	} else if now.Sub(w.known) > blindFor {
		c.conclude(ctx, q, returned, "its figures have not been known for a minute")
		return true
	}
	if why == "" {
		w.bad = 0
		return known && c.raise(ctx, q, now)
	}
	if w.bad++; w.bad < tolerated {
		return false
	}
	c.conclude(ctx, q, returned, why)
	return true
}

func (c *Changes) figures(service string) []Figures {
	if c.d.Figures == nil {
		return nil
	}
	return c.d.Figures(service)
}

// judge returns which bound the instances of the canary pass, and whether their figures are known.
func (q *canary) judge(rules *route.RuleSet, figures []Figures) (why string, known bool) {
	var rate, failed float64
	var p99 time.Duration
	instances, down := 0, 0
	for i := range figures {
		f := &figures[i]
		if in := rules.Adjust(f.Instance); !q.has(&in) || in.State != registry.Up {
			continue
		}
		instances++
		if f.Down {
			down++
		}
		if !f.Known {
			continue
		}
		known = true
		rate, failed = rate+f.Rate, failed+f.Failed
		if f.Rate >= fewCalls {
			p99 = max(p99, f.P99)
		}
	}
	switch {
	case len(figures) > 0 && instances == 0:
		return "none of its instances is left", true
	case instances > 0 && down == instances:
		return "none of its instances can be reached", true
	case rate < fewCalls:
		return "", known
	case q.Bounds.Errors > 0 && failed/rate > q.Bounds.Errors:
		return fmt.Sprintf("%.1f %% of its calls failed, and the bound is %.1f %%", failed/rate*100, q.Bounds.Errors*100), known
	case q.Bounds.P99 > 0 && p99 > q.Bounds.P99:
		return fmt.Sprintf("its p99 was %v, and the bound is %v", p99.Round(time.Microsecond), q.Bounds.P99), known
	}
	return "", known
}

// raise raises the share if it is time for it.
func (c *Changes) raise(ctx context.Context, q *canary, now time.Time) bool {
	if q.Step == nil || q.Share >= q.Step.To || now.Sub(q.Changed) < q.Step.Every {
		return false
	}
	var next *canary
	err := c.saveCanary(ctx, q.Service, func(o *canary) (*canary, error) {
		if o == nil || o.State != running || !o.Changed.Equal(q.Changed) {
			return nil, nil // another console was faster
		}
		o.Share, o.Changed = min(o.Share+o.Step.Share, o.Step.To), now.UTC().Truncate(time.Second)
		next = o
		return o, nil
	})
	if err != nil || next == nil {
		return true
	}
	c.alone(next.Service, next.String(), func() error { return c.setShare(ctx, next, next.Share, access.Console, next.String()) })
	return true
}

// conclude ends a canary. That it cannot be recorded does not keep it running.
func (c *Changes) conclude(ctx context.Context, q *canary, state, why string) {
	text := "the canary ended: " + why
	if state == returned {
		text = "the canary was taken back: " + why
	}
	c.alone(q.Service, text, func() error { return c.endCanary(ctx, q, state, access.Console, why) })
}

// alone makes a change that no user has asked for.
func (c *Changes) alone(service, text string, do func() error) {
	begun, lost := c.d.Log.Add(audit.Entry{User: access.Console, Self: true, Action: "canary", Service: service, Text: text, Outcome: audit.Begun})
	err := do()
	if lost == nil {
		c.end(begun, "canary", err) //nits:ignore errcheck the change is made, and there is no user to tell
	} else if err == nil {
		c.d.Note("canary", service, "", text+"; the audit log does not have it: "+lost.Error(), access.Console)
	}
}
