package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

const (
	// poll is how often a watch checks for changes whose publication it may have missed.
	poll = 3 * time.Second
	// grace is how long after an outage a watch keeps the records that expired during it: their
	// owners need a moment to renew them.
	grace = 5 * time.Second
)

// Watch implements registry.Resolver. It subscribes to the changes of the service and reads the
// whole service, at first and after each change; every three seconds, and when a record is about
// to expire, it checks whether it has missed a change. A record that cannot be decoded is reported
// as trouble and left out.
func (r *Registry) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if err := registry.CheckService(service); err != nil {
		return err
	}
	w := &watch{registry: r, service: service}
	err := follow(ctx, r, r.channel(service), w.look, registry.Equal, update, trouble)
	if upkeep.IsHopeless(err) {
		return fmt.Errorf("watch service %q: %w", service, err)
	}
	return err
}

// follow is upkeep.Follow, woken by a subscription to the channel.
func follow[T any](ctx context.Context, r *Registry, channel string, look func(context.Context) (upkeep.View[T], error),
	equal func(a, b T) bool, update func(T), trouble func(error),
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel, err := r.life.Bind(ctx)
	if err != nil {
		return err
	}
	wake, stopped := make(chan struct{}, 1), make(chan struct{})
	if !r.life.Go(func() { defer close(stopped); r.client.subscribe(ctx, channel, wake) }) {
		close(stopped)
	}
	defer func() { cancel(); <-stopped }()
	return upkeep.Follow(ctx, wake, look, equal, update, trouble)
}

// subscribe signals wake for every message on the channel, and whenever the subscription has been
// established, until ctx is done: earlier messages are lost. It reports no outage; the reads do.
func (c *client) subscribe(ctx context.Context, channel string, wake chan<- struct{}) {
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { upkeep.Signal(wake) })
	var delay upkeep.Delay
	for ctx.Err() == nil {
		began := time.Now()
		made, err := c.get(ctx)
		if err == nil {
			err = made.Receive(hooked, made.B().Subscribe().Channel(channel).Build(), func(rueidis.PubSubMessage) { upkeep.Signal(wake) })
		}
		if isRefusal(err) {
			return // no permission: polling must suffice
		}
		if time.Since(began) > poll {
			delay = upkeep.Delay{}
		}
		delay.Wait(ctx, nil)
	}
}

// watch is the state of one watch.
type watch struct {
	registry *Registry
	service  string

	revision string // if empty, everything is read
	at       int64  // time of the last read, in milliseconds of Redis's clock
	view     upkeep.View[[]registry.Instance]

	lost   bool      // the last read failed
	cutoff int64     // until the end of grace, records that expired after it stay listed; in milliseconds of Redis's clock
	grace  time.Time // end of the grace period, on this machine's clock
}

// look reads the service.
func (w *watch) look(ctx context.Context) (upkeep.View[[]registry.Instance], error) {
	if w.lost && w.at > 0 {
		w.revision = ""
	}
	var found listing
	err := w.registry.client.attempt(ctx, func(ctx context.Context, c rueidis.Client) error {
		resp := listScript.Exec(ctx, c, w.registry.keys(w.service), []string{w.revision, strconv.FormatInt(w.at, 10)})
		return found.parse(resp)
	})
	if err != nil {
		w.lost = true
		return upkeep.View[[]registry.Instance]{}, err
	}
	if w.lost && w.at > 0 {
		if !time.Now().Before(w.grace) {
			w.cutoff = w.at
		}
		w.grace = time.Now().Add(grace)
	}
	w.lost, w.at, w.revision = false, found.now, found.revision
	w.view.Again = poll
	if found.next > 0 {
		w.view.Again = min(poll, time.Duration(found.next-found.now+1)*time.Millisecond)
	}
	if time.Now().Before(w.grace) {
		w.revision, w.view.Again = "", min(w.view.Again, grace/10) // the end of the grace period changes the list, too
	} else {
		w.cutoff = 0
	}
	if !found.unchanged {
		w.read(found)
	}
	return w.view, nil
}

// read makes a list of the records.
func (w *watch) read(found listing) {
	cutoff := found.now
	if w.cutoff > 0 {
		cutoff = w.cutoff
	}
	list := make([]registry.Instance, 0, len(found.records))
	w.view.Problem = nil
	for key, record := range found.records {
		if found.expiry[key] <= cutoff {
			continue
		}
		in, err := w.registry.decode(w.service, key, record)
		if err != nil {
			if w.view.Problem == nil || err.Error() < w.view.Problem.Error() { // deterministic, whatever the order
				w.view.Problem = err
			}
			continue
		}
		list = append(list, in)
	}
	registry.Sort(list)
	w.view.Value = list
}

// listing is the answer of listSource.
type listing struct {
	revision  string
	now, next int64
	unchanged bool
	records   map[string]string
	expiry    map[string]int64
}

func (l *listing) parse(resp rueidis.RedisResult) error {
	parts, err := resp.ToArray()
	if err != nil {
		return err
	}
	if len(parts) != 3 && len(parts) != 5 {
		return fmt.Errorf("the answer has %d parts: want 3 or 5", len(parts))
	}
	var errs [5]error
	l.revision, errs[0] = parts[0].ToString()
	l.now, errs[1] = number(parts[1])
	l.next, errs[2] = number(parts[2])
	if l.unchanged = len(parts) == 3; !l.unchanged {
		l.records, errs[3] = parts[3].AsStrMap()
		var scores []string
		scores, errs[4] = parts[4].AsStrSlice()
		l.expiry = make(map[string]int64, len(scores)/2)
		for pair := range slices.Chunk(scores, 2) {
			if len(pair) == 2 {
				l.expiry[pair[0]] = milliseconds(pair[1])
			}
		}
	}
	return errors.Join(errs[:]...)
}

func number(m rueidis.RedisMessage) (int64, error) {
	text, err := m.ToString()
	return milliseconds(text), err
}

// milliseconds parses a score, which Redis may write with an exponent.
func milliseconds(text string) int64 {
	f, _ := strconv.ParseFloat(text, 64) // an invalid score, written by hand, counts as expired
	return int64(f)
}

// Services implements registry.Lister. It waits for Redis until ctx is done.
func (r *Registry) Services(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var names []string
	err := r.life.Ask(ctx, "list services", func(ctx context.Context) error {
		names = nil
		return r.client.attempt(ctx, func(ctx context.Context, c rueidis.Client) error {
			known, err := c.Do(ctx, c.B().Zrange().Key(r.servicesKey()).Min("0").Max("-1").Build()).AsStrSlice()
			if err != nil || len(known) == 0 {
				return err
			}
			calls := make([]rueidis.LuaExec, len(known))
			for i, name := range known {
				calls[i] = rueidis.LuaExec{Keys: []string{r.key(name, "expiry")}}
			}
			for i, resp := range aliveScript.ExecMulti(ctx, c, calls...) {
				n, err := resp.AsInt64()
				if err != nil {
					return err
				}
				if n > 0 && registry.CheckService(known[i]) == nil {
					names = append(names, known[i])
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}
