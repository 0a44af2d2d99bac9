package mdns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/anser-rpc/anser/registry"
)

const (
	again    = 2                      // how often a change is announced once more
	pace     = time.Millisecond       // between two messages, so that slow receivers lose none
	retry    = 100 * time.Millisecond // after a failure to send
	replyMin = 20 * time.Millisecond  // before an answer, to spread the answers of all hosts (RFC 6762, section 6)
	replyMax = 100 * time.Millisecond
)

// Register implements registry.Registrar. It returns after the first announcement, which does not
// mean that any host has received it; the instance is announced again until it is withdrawn.
func (r *Registry) Register(ctx context.Context, in registry.Instance) error {
	if err := in.Validate(); err != nil {
		return err
	}
	in = in.Clone()
	// The records that others have announced under the key must be known, so that this one gets
	// the later timestamp.
	if err := r.waitSettled(ctx); err != nil {
		return err
	}
	return r.persist(ctx, func() error { return r.announce(in) })
}

// Deregister implements registry.Registrar.
func (r *Registry) Deregister(ctx context.Context, in registry.Instance) error {
	return r.persist(ctx, func() error { return r.withdraw(labelOf(in)) })
}

// persist repeats send until it succeeds.
func (r *Registry) persist(ctx context.Context, send func() error) error {
	var last error
	for {
		if err := r.ended(ctx); err != nil {
			return because(err, last)
		}
		if last = r.attempt(send); last == nil || errors.Is(last, errTooLarge) {
			return last
		}
		select {
		case <-time.After(retry):
		case <-r.ctx.Done():
		case <-ctx.Done():
		}
	}
}

// because adds the reason of a timeout to its error, if it is known.
func because(err, reason error) error {
	if reason == nil || errors.Is(err, registry.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", err, reason)
}

func (r *Registry) attempt(send func() error) error {
	r.sending.Lock()
	defer r.sending.Unlock()
	if r.ctx.Err() != nil {
		return registry.ErrClosed
	}
	return send()
}

// announce sends a new record, and keeps it on success. The caller holds sending.
func (r *Registry) announce(in registry.Instance) error {
	rec := &record{label: labelOf(in), in: in, owner: r.owner, at: time.Now().UnixNano(), again: again}
	r.mu.Lock()
	if old := r.known[rec.label]; old != nil {
		rec.at = max(rec.at, old.at+1) // even if the clock of the other host is ahead
	}
	r.mu.Unlock()
	list, err := r.resources(rec)
	if err != nil {
		return err
	}
	if err := r.send(list); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own[rec.label], r.known[rec.label] = rec, rec
	r.signalLocked()
	return nil
}

// withdraw sends a goodbye for an own record. The caller holds sending.
func (r *Registry) withdraw(label string) error {
	r.mu.Lock()
	rec := r.own[label]
	r.mu.Unlock()
	if rec == nil {
		return nil
	}
	g := goodbye{label, rec.owner, rec.at, again}
	list, err := r.farewells(g)
	if err != nil {
		return err
	}
	if err := r.send(list); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetLocked(label)
	r.leaving = append(r.leaving, g)
	return nil
}

// forgetLocked removes an own record.
func (r *Registry) forgetLocked(label string) {
	if r.known[label] == r.own[label] {
		delete(r.known, label)
	}
	delete(r.own, label)
	r.signalLocked()
}

func (r *Registry) send(records []dnsmessage.Resource) error {
	message, err := response(records)
	if err != nil {
		return err
	}
	return r.link.send(message)
}

// farewell sends a goodbye for every own record, twice: there will be no later one.
func (r *Registry) farewell() {
	r.sending.Lock()
	defer r.sending.Unlock()
	r.mu.Lock()
	var all []goodbye
	for _, rec := range r.own {
		all = append(all, goodbye{label: rec.label, owner: rec.owner, at: rec.at})
	}
	r.mu.Unlock()
	for range 2 {
		b := batch{registry: r}
		for _, g := range all {
			if list, err := r.farewells(g); err == nil && b.add(list) != nil {
				return // there is no network: the records expire
			}
		}
		if b.flush() != nil {
			return
		}
	}
}

// batch collects records into messages.
type batch struct {
	registry *Registry
	records  []dnsmessage.Resource
	size     int
}

// add first sends the batch if the records would make it too large.
func (b *batch) add(list []dnsmessage.Resource) error {
	size := 0
	for _, a := range list {
		size += 64
		if txt, ok := a.Body.(*dnsmessage.TXTResource); ok {
			for _, s := range txt.TXT {
				size += 1 + len(s)
			}
		}
	}
	if b.size > 0 && b.size+size > maxPacket {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.records, b.size = append(b.records, list...), b.size+size
	return nil
}

func (b *batch) flush() error {
	if len(b.records) == 0 {
		return nil
	}
	err := b.registry.send(b.records)
	b.records, b.size = b.records[:0], 0
	time.Sleep(pace)
	return err
}

// keep repeats announcements that are due, removes expired records, and follows changes of the
// network.
func (r *Registry) keep() {
	tick := time.NewTicker(r.ttl / 20)
	defer tick.Stop()
	r.note(r.ask())
	asked := 1
	for last := time.Now(); ; {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		r.link.scan()
		all := time.Since(last) > r.ttl/3-r.ttl/20
		if all {
			last = time.Now()
		}
		err := r.speak(all)
		// If nothing is announced, a query shows whether the network works; the first one may be
		// lost.
		if err == nil && (all || asked < 3 || r.inTrouble()) {
			err = r.ask()
			asked++
		}
		r.note(err)
		r.expire()
	}
}

func (r *Registry) ask() error {
	message, err := r.question()
	if err != nil {
		return err
	}
	return r.link.send(message)
}

// reply answers queries, and combines the answers to queries that arrive together.
func (r *Registry) reply() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.answer:
		}
		select {
		case <-r.ctx.Done():
			return
		case <-time.After(replyMin + rand.N(replyMax-replyMin)):
		}
		select {
		case <-r.answer: // arrived meanwhile
		default:
		}
		r.speak(true)
	}
}

// speak announces all own records, or those due for repetition. Register may run between two
// messages.
func (r *Registry) speak(all bool) error {
	r.mu.Lock()
	labels := slices.Collect(maps.Keys(r.own))
	leaving := r.leaving
	r.leaving = nil
	r.mu.Unlock()
	for _, g := range leaving {
		if err := r.attempt(func() error { return r.repeat(g) }); err != nil {
			return err
		}
	}
	for len(labels) > 0 {
		n := min(len(labels), 16)
		some := labels[:n]
		labels = labels[n:]
		if err := r.attempt(func() error { return r.speakOf(some, all) }); err != nil {
			return err
		}
	}
	return nil
}

// repeat sends a goodbye again. The caller holds sending.
func (r *Registry) repeat(g goodbye) error {
	r.mu.Lock()
	back := r.own[g.label] != nil
	r.mu.Unlock()
	if back {
		return nil // it was registered again
	}
	list, err := r.farewells(g)
	if err == nil {
		err = r.send(list)
	}
	if g.again--; g.again > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.leaving = append(r.leaving, g)
	}
	return err
}

// speakOf announces the records that still exist. The caller holds sending.
func (r *Registry) speakOf(labels []string, all bool) error {
	b := batch{registry: r}
	for _, label := range labels {
		r.mu.Lock()
		rec := r.own[label]
		due := rec != nil && (all || rec.again > 0)
		if due && rec.again > 0 {
			rec.again--
		}
		r.mu.Unlock()
		if !due {
			continue
		}
		list, err := r.resources(rec)
		if err != nil {
			return err
		}
		if err := b.add(list); err != nil {
			return err
		}
	}
	return b.flush()
}
