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
	// parallel is the number of concurrent requests.
	parallel = 8
	// confirmation is how long a write may take to become visible, on a server that must contact
	// others.
	confirmation = 8 * time.Second
	// patience is after how long a write that is not visible is repeated.
	patience = 200 * time.Millisecond
	// maxAhead is how far in the future a stamp may be. One beyond that is ignored: no clock wrote
	// it.
	maxAhead = 24 * time.Hour
)

// backend writes the announcer's records.
type backend struct {
	registry *Registry
	stamp    int64               // the last one used
	written  map[announced]int64 // the stamps of the last writes of the announced instances
}

// announced identifies an instance of this process.
type announced struct{ service, key string }

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

// nextStamp returns a stamp that is newer than all earlier ones of this backend, and newer than
// the stamp after, which a process whose clock is ahead may have written.
func (b *backend) nextStamp(after int64) int64 {
	now := time.Now().UnixMicro()
	if after > now+maxAhead.Microseconds() {
		after = 0
	}
	b.stamp = max(b.stamp, after, now-1) + 1
	return b.stamp
}

// plan holds the changes of one service. Nacos has no transactions, so the backend first reads,
// then writes, and then checks whether the writes are visible.
type plan struct {
	*backend
	service string
	items   []upkeep.Item
	indices []int
	results []error

	requests []request
	posts    map[place]string // metadata stamps that must appear
	deletes  map[place]string // metadata stamps that must disappear
}

type request struct {
	method, path string
	params       url.Values
	place        place
	last         bool // after the other requests
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

// holdOneBack moves one of several deletes that would empty the service to the end, and reports
// whether it has. Version 0.8 of Nacos takes it for a mistake if a list of two or more becomes
// empty in one step, ignores the step, and continues to list the deleted instances. Deletes in
// quick succession count as one step there.
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

// consider plans the requests of one item, and returns an error if it is impossible.
func (p *plan) consider(i int, there []nacosInstance) error {
	item := p.items[i]
	id := announced{p.service, item.Key}
	last := p.written[id]            // the newest stamp that this process wrote under the key
	newest := int64(0)               // the newest stamp under the key and at the place, in Nacos
	var mine, theirs []nacosInstance // under the key of the item
	var at *nacosInstance            // the instance at its place
	for _, h := range there {
		in, err := decode(p.service, h)
		if err == nil && in.Key() == item.Key && h.Metadata[ownerKey] != "" {
			newest = max(newest, h.stamp())
			if h.Metadata[ownerKey] == p.registry.owner {
				mine = append(mine, h)
				last = max(last, h.stamp())
			} else if h.alive() {
				theirs = append(theirs, h)
			}
		}
		if item.Want != nil && h.place() == placeOf(*item.Want) {
			newest = max(newest, h.stamp())
			at = &h
		}
	}
	if item.Want == nil {
		delete(p.written, id)
		p.removeAll(mine, place{})
		return nil
	}
	where := placeOf(*item.Want)
	if at != nil && at.Metadata[ownerKey] == p.registry.owner {
		if in, err := decode(p.service, *at); err == nil && in.Key() != item.Key && !p.leaving(in.Key(), where) {
			return fmt.Errorf("nacos identifies instances by their address, and %q is at %s already: give it another port, or deregister that first", in.Key(), item.Want.Address)
		}
	}
	if !item.Force {
		if p.isTaken(theirs, at, last) {
			delete(p.written, id)
			p.removeAll(mine, place{})
			return upkeep.ErrTaken
		}
		// Nacos has executed a write late if the stamp is older. Then the record is written again
		// even if it is the wanted one: watches that have seen a newer stamp ignore this one.
		if at != nil && at.Metadata[ownerKey] == p.registry.owner && at.Metadata[recordKey] == record(*item.Want) && at.stamp() >= last {
			p.removeAll(mine, where)
			p.beat(*at)
			return nil
		}
	}
	stamp, err := p.post(*item.Want, newest)
	if err != nil {
		return err
	}
	p.written[id] = stamp
	p.removeLast(mine, where)
	p.removeLast(theirs, where)
	return nil
}

// isTaken reports whether another process has taken an item over since this one wrote it with the
// stamp last. theirs holds the item's instances of other processes, and at is the instance at its
// place. An older one is a write of a predecessor that Nacos has executed late.
func (p *plan) isTaken(theirs []nacosInstance, at *nacosInstance, last int64) bool {
	if at != nil && at.alive() && at.Metadata[ownerKey] != p.registry.owner &&
		(at.Metadata[ownerKey] == "" || at.stamp() > last) {
		return true
	}
	return slices.ContainsFunc(theirs, func(h nacosInstance) bool { return h.stamp() > last })
}

// leaving reports whether the same plan removes the key from the place.
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

// post plans to write the instance with a stamp that is newer than after, and returns the stamp.
func (p *plan) post(in registry.Instance, after int64) (stamp int64, err error) {
	stamp = p.nextStamp(after)
	metadata, err := metadataOf(in, p.registry.owner, stamp)
	if err != nil {
		return 0, err
	}
	where := placeOf(in)
	params := nacosInstance{IP: where.ip, Port: where.port, Cluster: where.cluster, Metadata: metadata}.form(weightOf(in))
	p.posts[where] = metadata[stampKey]
	p.requests = append(p.requests, request{method: http.MethodPost, path: "/v1/ns/instance", params: params, place: where})
	return stamp, nil
}

// beat renews an instance that Nacos has. If Nacos has just lost it, the heartbeat creates it
// again.
func (p *plan) beat(have nacosInstance) {
	beat := map[string]any{
		"serviceName": p.service, "dom": p.service, "ip": have.IP, "port": have.Port, "cluster": have.Cluster,
		"weight": have.Weight, "metadata": have.Metadata, "scheduled": true,
	}
	p.requests = append(p.requests, request{
		method: http.MethodPut, path: "/v1/ns/instance/beat", params: url.Values{"beat": {encodeJSON(beat)}}, place: have.place(),
	})
}

// removeAll plans to delete the instances that are not at the place keep.
func (p *plan) removeAll(all []nacosInstance, keep place) { p.remove(all, keep, false) }

// removeLast is like removeAll, but after all other requests, so that the key stays visible in
// between.
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

// send makes the requests of this step, several at a time. The first one into a cluster goes
// alone: it makes version 0.8 of Nacos create the service and the cluster, and of two requests
// that wait for that, one waits for five seconds.
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
			if err := p.make(ctx, req, creationTimeout); err != nil {
				return err
			}
			known[req.place.cluster] = true
		default:
			together = append(together, req)
		}
	}
	return p.makeAll(ctx, together)
}

// makeAll makes requests for different places, and returns the error of one that failed.
func (p *plan) makeAll(ctx context.Context, requests []request) error {
	var wg sync.WaitGroup
	var mu sync.Mutex // guards failure
	var failure error
	free := make(chan struct{}, parallel)
	for _, req := range requests {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			if err := p.make(ctx, req, attemptTimeout); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failure = err
			}
		})
	}
	wg.Wait()
	return failure
}

// superseded reports whether the request would delete an instance that the same plan writes.
func (req request) superseded(p *plan) bool {
	_, replaced := p.posts[req.place]
	return replaced && req.method == http.MethodDelete
}

func (p *plan) make(ctx context.Context, req request, timeout time.Duration) error {
	p.registry.scope(p.service, req.params)
	_, err := p.registry.client.do(ctx, timeout, req.method, req.path, req.params)
	return err
}

// confirm waits until the writes are visible, with or without the last requests. A write that
// stays invisible is repeated after a while. So is a renewal: an instance that is lost between the
// read and its heartbeat is created by the heartbeat, but version 0.8 loses some of several
// heartbeats that do so at the same time.
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

// shake returns the requests to make if repeated deletes had no effect. Two processes that leave
// at the same moment also empty a list in one step (see holdOneBack), and then every further
// delete is ignored, too: Nacos has nothing to delete, and still lists the old instances. A new
// instance replaces the whole list; it is the only one, so deleting it has an effect. Its weight
// of 0 keeps clients from choosing it meanwhile.
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
		// The others disappear with it; deleting them in the same step would undo that.
		return slices.DeleteFunc(missing, func(r request) bool { return r.method == http.MethodDelete })
	}
	return missing
}

// missing returns the requests that are not visible yet, with or without the last ones.
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
			// A newer stamp belongs to another process that has written since.
			if n, _ := strconv.ParseInt(p.posts[req.place], 10, 64); !found || h.stamp() < n {
				missing = append(missing, req)
			}
		}
	}
	return missing
}
