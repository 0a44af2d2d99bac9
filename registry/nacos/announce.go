package nacos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

const (
	// parallel is how many requests are made at once.
	parallel = 8
	// confirmation is how long a write may take to be seen, on a server that has to ask others.
	confirmation = 8 * time.Second
	// patience is after what time what is not seen is written again.
	patience = 200 * time.Millisecond
)

// backend writes what the announcer wants.
type backend struct {
	registry *Registry
	stamp    int64 // the last one given out
}

// Apply implements upkeep.Backend.
func (b *backend) Apply(ctx context.Context, items []upkeep.Item) ([]error, error) {
	results := make([]error, len(items))
	services := make(map[string]*plan)
	for i, item := range items {
		p := services[item.Service]
		if p == nil {
			p = &plan{backend: b, service: item.Service, items: items, results: results, posts: make(map[place]string), deletes: make(map[place]string)}
			services[item.Service] = p
		}
		p.indices = append(p.indices, i)
	}
	for _, p := range services {
		if err := p.carryOut(ctx); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (b *backend) nextStamp() int64 {
	b.stamp = max(b.stamp+1, time.Now().UnixMicro())
	return b.stamp
}

// plan is what is to be done in one service. Nacos has no transactions, so it first looks, then writes, and
// then looks whether that has arrived.
type plan struct {
	*backend
	service string
	items   []upkeep.Item
	indices []int
	results []error

	requests []request
	posts    map[place]string // metadata stamp that is to be there
	deletes  map[place]string // metadata stamp that is to be gone
}

type request struct {
	method, path string
	params       url.Values
	place        place
	last         bool // after the others
}

func (p *plan) carryOut(ctx context.Context) error {
	there, err := p.registry.list(ctx, p.service)
	if err != nil {
		return err
	}
	for _, i := range p.indices {
		if err := p.consider(i, there); err != nil {
			p.results[i] = err
		}
	}
	held := p.holdOneBack(there)
	if err := p.send(ctx, there, false); err != nil {
		return err
	}
	if held {
		if err := p.confirm(ctx, false); err != nil {
			return err
		}
	}
	if err := p.send(ctx, there, true); err != nil {
		return err
	}
	return p.confirm(ctx, true)
}

// holdOneBack moves one of several deletes that leave the service empty to the end, and reports whether it has.
// Version 0.8 of Nacos takes it for a mistake when a list of two or more becomes empty in one step, ignores
// that, and goes on showing what has been deleted. Deletes that come soon after one another are one step there.
func (p *plan) holdOneBack(there []nacosInstance) bool {
	if len(p.deletes) < 2 || len(p.posts) > 0 {
		return false
	}
	for _, h := range there {
		if _, goes := p.deletes[h.place()]; !goes {
			return false
		}
	}
	for i := range p.requests {
		if p.requests[i].method == http.MethodDelete {
			p.requests[i].last = true
			return true
		}
	}
	return false
}

// consider plans what one item needs, and returns why it cannot be had.
func (p *plan) consider(i int, there []nacosInstance) error {
	item := p.items[i]
	var mine, theirs []nacosInstance // under the key of the item
	var at *nacosInstance            // at its place
	for _, h := range there {
		in, err := decode(p.service, h)
		if err == nil && in.Key() == item.Key && h.Metadata[ownerKey] != "" {
			if h.Metadata[ownerKey] == p.registry.owner {
				mine = append(mine, h)
			} else if h.alive() {
				theirs = append(theirs, h)
			}
		}
		if item.Want != nil && h.place() == placeOf(*item.Want) {
			at = &h
		}
	}
	if item.Want == nil {
		p.removeAll(mine, place{})
		return nil
	}
	where := placeOf(*item.Want)
	if at != nil && at.Metadata[ownerKey] == p.registry.owner {
		if in, err := decode(p.service, *at); err == nil && in.Key() != item.Key && !p.leaving(in.Key(), where) {
			return fmt.Errorf("nacos tells instances apart by their address, and %q is at %s already: give it another port, or deregister that first", in.Key(), item.Want.Address)
		}
	}
	if !item.Force {
		newest := int64(0)
		for _, h := range mine {
			newest = max(newest, h.stamp())
		}
		for _, h := range theirs {
			if h.stamp() > newest {
				p.removeAll(mine, place{})
				return upkeep.ErrTaken
			}
		}
		if at != nil && at.alive() && at.Metadata[ownerKey] != p.registry.owner {
			p.removeAll(mine, where)
			return upkeep.ErrTaken
		}
		if at != nil && at.Metadata[ownerKey] == p.registry.owner && at.Metadata[recordKey] == record(*item.Want) {
			p.removeAll(mine, where)
			p.beat(*at)
			return nil
		}
	}
	if err := p.post(*item.Want); err != nil {
		return err
	}
	p.removeLast(mine, where)
	p.removeLast(theirs, where)
	return nil
}

// leaving reports whether the same plan takes the key away from the place.
func (p *plan) leaving(key string, from place) bool {
	for _, i := range p.indices {
		if item := p.items[i]; item.Key == key {
			return item.Want == nil || placeOf(*item.Want) != from
		}
	}
	return false
}

func record(in registry.Instance) string {
	data, err := registry.Encode(in)
	if err != nil {
		return ""
	}
	return string(data)
}

func (p *plan) post(in registry.Instance) error {
	stamp := p.nextStamp()
	metadata, err := metadataOf(in, p.registry.owner, stamp)
	if err != nil {
		return err
	}
	where := placeOf(in)
	params := nacosInstance{IP: where.ip, Port: where.port, Cluster: where.cluster, Metadata: metadata}.form(weightOf(in))
	p.posts[where] = metadata[stampKey]
	p.requests = append(p.requests, request{method: http.MethodPost, path: "/v1/ns/instance", params: params, place: where})
	return nil
}

// beat renews the instance that Nacos has. Where it has just forgotten it, it takes it from the beat.
func (p *plan) beat(have nacosInstance) {
	beat := map[string]any{
		"serviceName": p.service, "dom": p.service, "ip": have.IP, "port": have.Port, "cluster": have.Cluster,
		"weight": have.Weight, "metadata": have.Metadata, "scheduled": true,
	}
	p.requests = append(p.requests, request{
		method: http.MethodPut, path: "/v1/ns/instance/beat", params: url.Values{"beat": {encodeJSON(beat)}}, place: have.place(),
	})
}

// removeAll plans to delete the instances that are not at the place to keep.
func (p *plan) removeAll(all []nacosInstance, keep place) { p.remove(all, keep, false) }

// removeLast does that after everything else, so that the key does not go away in between.
func (p *plan) removeLast(all []nacosInstance, keep place) { p.remove(all, keep, true) }

func (p *plan) remove(all []nacosInstance, keep place, last bool) {
	for _, h := range all {
		if h.place() == keep {
			continue
		}
		params := h.place().form()
		params.Set("ephemeral", "true")
		p.deletes[h.place()] = h.Metadata[stampKey]
		p.requests = append(p.requests, request{http.MethodDelete, "/v1/ns/instance", params, h.place(), last})
	}
}

// send makes the requests that are for this turn, several at once. The first one into a cluster goes alone:
// version 0.8 of Nacos makes the service and the cluster for it, and of two that wait for that, one waits for
// five seconds.
func (p *plan) send(ctx context.Context, there []nacosInstance, last bool) error {
	known := make(map[string]bool)
	for _, h := range there {
		known[h.Cluster] = true
	}
	var together []request
	for _, req := range p.requests {
		switch {
		case req.last != last || req.superseded(p):
		case req.method == http.MethodPost && !known[req.place.cluster]:
			if err := p.make(ctx, req); err != nil {
				return err
			}
			known[req.place.cluster] = true
		default:
			together = append(together, req)
		}
	}
	return p.makeAll(ctx, together)
}

// makeAll makes requests that are for different places, and returns what one of those that failed did with.
func (p *plan) makeAll(ctx context.Context, requests []request) error {
	var wg sync.WaitGroup
	var mu sync.Mutex // guards failure
	var failure error
	free := make(chan struct{}, parallel)
	for _, req := range requests {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			if err := p.make(ctx, req); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failure = err
			}
		})
	}
	wg.Wait()
	return failure
}

// superseded reports whether the request would delete what the same plan puts there.
func (req request) superseded(p *plan) bool {
	_, replaced := p.posts[req.place]
	return replaced && req.method == http.MethodDelete
}

func (p *plan) make(ctx context.Context, req request) error {
	p.registry.scope(p.service, req.params)
	_, err := p.registry.client.do(ctx, req.method, req.path, req.params)
	return err
}

// confirm waits until Nacos shows what was written, without the last requests or with them. What it does not
// show after a while is written again. So is what was renewed: an instance that is forgotten between the look
// and its beat comes back with the beat, but of several beats that do that at once version 0.8 loses some.
func (p *plan) confirm(ctx context.Context, last bool) error {
	if len(p.requests) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, confirmation, errors.New("nacos has not shown what was written to it"))
	defer cancel()
	var delay upkeep.Delay
	for sent, rounds := time.Now(), 0; ; {
		there, err := p.registry.list(ctx, p.service)
		if err != nil {
			return err
		}
		missing := p.missing(there, last)
		if len(missing) == 0 {
			return nil
		}
		if !delay.Wait(ctx, nil) {
			return context.Cause(ctx)
		}
		if time.Since(sent) < patience {
			continue
		}
		if rounds++; rounds%2 == 0 {
			missing = p.shake(missing, there)
		}
		if err := p.makeAll(ctx, missing); err != nil {
			return err
		}
		sent = time.Now()
	}
}

// shake returns what to do where deleting again was in vain. Two processes that leave at the same moment make a
// list empty in one step as well (see holdOneBack), and then every further delete is ignored too: Nacos has
// nothing to delete, and still shows what it had. An instance that is put there replaces all that; it is the
// only one, so that deleting it counts. Its weight of 0 has no caller choose it meanwhile.
func (p *plan) shake(missing []request, there []nacosInstance) []request {
	for i, req := range missing {
		if req.method != http.MethodDelete {
			continue
		}
		for _, h := range there {
			if h.place() == req.place {
				missing[i] = request{method: http.MethodPost, path: req.path, params: h.form(0), place: req.place}
			}
		}
		// The others go with it; to delete them in the same step would undo that.
		return slices.DeleteFunc(missing, func(r request) bool { return r.method == http.MethodDelete })
	}
	return missing
}

// missing returns the requests that have left no trace, without the last ones or with them.
func (p *plan) missing(there []nacosInstance, last bool) []request {
	at := make(map[place]nacosInstance, len(there))
	for _, h := range there {
		at[h.place()] = h
	}
	var missing []request
	for _, req := range p.requests {
		h, found := at[req.place]
		switch {
		case req.superseded(p) || req.last && !last:
		case req.method == http.MethodPut:
			if !found {
				missing = append(missing, req)
			}
		case req.method == http.MethodDelete:
			if found && h.Metadata[stampKey] == p.deletes[req.place] {
				missing = append(missing, req)
			}
		default:
			// A newer stamp is somebody else who has been there since.
			if n, _ := strconv.ParseInt(p.posts[req.place], 10, 64); !found || h.stamp() < n {
				missing = append(missing, req)
			}
		}
	}
	return missing
}
