package consul

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// wait is how long a blocking query waits for a change before it is repeated. Consul adds up to a
// sixteenth.
const wait = 10 * time.Second

// Watch implements registry.Resolver. It repeats a blocking query for the service at the index of
// the last answer; each answer holds the whole service, so no change is missed. An index that goes
// backwards, as after a loss of Consul's data, makes it start again. A record that cannot be
// decoded is reported as trouble and left out.
func (r *Registry) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if err := registry.CheckService(service); err != nil {
		return err
	}
	var last []registry.Instance
	current, told := false, make(map[string]bool) // told holds what is broken in the last list
	problem := func(err error) {
		current = false
		if trouble != nil {
			trouble(err)
		}
	}
	err := r.follow(ctx, func(q *api.QueryOptions) (func(), uint64, error) {
		entries, meta, err := r.client.Health().Service(r.serviceName(service), "", false, q)
		if err != nil {
			return nil, 0, err
		}
		return func() {
			list, broken := r.instances(service, entries)
			before := told
			told = make(map[string]bool)
			for _, err := range broken {
				told[err.Error()] = true
				if !before[err.Error()] {
					problem(err)
				}
			}
			if !current || !registry.Equal(list, last) {
				update(list)
				current, last = true, list
			}
		}, meta.LastIndex, nil
	}, problem)
	if err != nil {
		return fmt.Errorf("watch service %q: %w", service, err)
	}
	return nil
}

// instances returns the live instances, and the errors of the others.
func (c *config) instances(service string, entries []*api.ServiceEntry) (list []registry.Instance, broken []error) {
	// An instance that came back on another host is in the catalogue twice for a while: the later
	// entry counts.
	type candidate struct {
		instance registry.Instance
		owner    string
	}
	byKey := make(map[string]candidate, len(entries))
	for _, e := range entries {
		if !isWhole(e) {
			broken = append(broken, fmt.Errorf("consul service %s: the answer has an entry without service, node or check: is it an agent of Consul that answers?", service))
			continue
		}
		if e.Service.Service != c.serviceName(service) { // Consul's names do not distinguish case
			continue
		}
		ok, maintenance := alive(e)
		if !ok {
			continue
		}
		in, err := c.decode(service, e)
		if err != nil {
			broken = append(broken, err)
			continue
		}
		if maintenance {
			in.State = registry.Disabled
		}
		owner := e.Service.Meta[ownerKey]
		if other, twice := byKey[in.Key()]; !twice || owner > other.owner {
			byKey[in.Key()] = candidate{in, owner}
		}
	}
	list = make([]registry.Instance, 0, len(byKey))
	for _, c := range byKey {
		list = append(list, c.instance)
	}
	registry.Sort(list)
	return list, broken
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// follow repeats a blocking query until ctx is done or a retry is pointless, and calls the
// returned function whenever the index differs. problem receives the errors in between.
func (r *Registry) follow(ctx context.Context, query func(*api.QueryOptions) (tell func(), index uint64, err error), problem func(error)) error {
	ctx, cancel := r.life.Within(ctx)
	defer cancel()
	var delay upkeep.Delay
	var index uint64
	for ever := false; ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		timeout := readTimeout
		if index > 0 {
			timeout += wait + wait/16
		}
		var tell func()
		var now uint64
		var came time.Time // when the answer began to arrive
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { came = time.Now() }})
		err := r.attempt(traced, timeout, func(q *api.QueryOptions) (err error) {
			// Otherwise a Consul server that has just started answers from the part of its log
			// that it has read so far.
			q.RequireConsistent = true
			q.WaitIndex, q.WaitTime = index, wait
			tell, now, err = query(q)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && index > 0:
			// The agent may have hung up because it restarts: a query that does not wait shows
			// whether there is a lasting problem.
			index = 0
			delay.Wait(ctx, nil)
			continue
		case err != nil && !ever && hopeless(err):
			// Later on, the permission may be restored: then the error is trouble like any other.
			return err
		case err != nil:
			problem(err)
			delay.Wait(ctx, nil)
			continue
		}
		ever, delay = true, upkeep.Delay{}
		if now != index || index == 0 {
			tell()
		}
		if now < index {
			now = 0
		}
		// Each answer holds the whole service: if it is large, let changes accumulate.
		rest(ctx, min(2*time.Since(came), time.Second))
		if index = now; index == 0 {
			// The query did not block, and the next one would not either.
			delay.Wait(ctx, nil)
		}
	}
}
