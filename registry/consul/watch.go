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

// wait is how long a query waits for a change before it is made again. Consul adds up to a sixteenth.
const wait = 10 * time.Second

// Watch implements registry.Resolver. It asks again and again for the service as it is after the index of the
// last answer; each answer is the whole service, so that nothing is missed. An index that goes backwards, as
// that of a Consul does which lost its data, makes it begin again. A record that cannot be read is reported as
// trouble and left out.
func (r *Registry) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if err := registry.CheckService(service); err != nil {
		return err
	}
	var last []registry.Instance
	current, told := false, make(map[string]bool) // told: what is broken in the last list
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

// instances returns the instances that live, and what is wrong with others.
func (c *config) instances(service string, entries []*api.ServiceEntry) (list []registry.Instance, broken []error) {
	// An instance that came back on another host is in the catalogue twice for a while: the later one counts.
	type candidate struct {
		instance registry.Instance
		owner    string
	}
	byKey := make(map[string]candidate, len(entries))
	for _, e := range entries {
		if e.Service.Service != c.serviceName(service) { // Consul finds names that differ in case, too
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

// follow makes a query that waits for a change, again and again until ctx is done or there is no use in it, and
// calls what it returns where the index differs. problem hears of what keeps it from that.
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
		var came time.Time // when the answer began to
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { came = time.Now() }})
		err := r.attempt(traced, timeout, func(q *api.QueryOptions) (err error) {
			// Without it, a Consul that has just started answers from what it has read of its log so far.
			q.RequireConsistent = true
			q.WaitIndex, q.WaitTime = index, wait
			tell, now, err = query(q)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && index > 0:
			// The agent may have hung up because it restarts: a query that does not wait tells whether it is
			// more than that.
			index = 0
			delay.Wait(ctx, nil)
			continue
		case err != nil && !ever && hopeless(err):
			// Later on, permission may come back: then it is trouble like any other.
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
		// Each answer has all of the service: where it is large, let changes collect.
		rest(ctx, min(2*time.Since(came), time.Second))
		if index = now; index == 0 {
			// It did not wait, and would not wait the next time.
			delay.Wait(ctx, nil)
		}
	}
}
