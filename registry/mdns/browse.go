package mdns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/anser-rpc/anser/registry"
)

// merge is how long a watcher waits after a change for further ones.
const merge = 10 * time.Millisecond

var errFull = fmt.Errorf("there are more than %d instances on the network: those beyond are left out; use a registry with a server", MaxInstances)

// listen processes the messages of others until the registry is closed.
func (r *Registry) listen() {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.link.receive(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // on some systems, the error of an earlier message
			select {
			case <-r.ctx.Done():
				return
			case <-time.After(retry):
			}
			continue
		}
		h := r.understand(buf[:n])
		if n >= 2 && h.empty {
			r.echo(binary.BigEndian.Uint16(buf))
			continue
		}
		if h.asked {
			select {
			case r.answer <- struct{}{}:
			default:
			}
		}
		r.take(h)
	}
}

// take stores the content of a message.
func (r *Registry) take(h heard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := false
	for _, g := range h.goodbyes {
		if old := r.known[g.label]; old != nil && g.owner != r.owner && old.owner == g.owner && old.at <= g.at {
			delete(r.known, g.label)
			changed = true
		}
	}
	for i := range h.records {
		changed = r.takeLocked(&h.records[i]) || changed
	}
	if changed {
		r.signalLocked()
	}
}

// takeLocked stores a record of another registry, and reports whether that changed anything.
func (r *Registry) takeLocked(rec *record) bool {
	if rec.owner == r.owner {
		return false
	}
	old := r.known[rec.label]
	switch {
	case old == nil && len(r.known) >= MaxInstances:
		was := r.overflow
		r.overflow = true
		return !was
	case old != nil && (old.at > rec.at || old.at == rec.at && old.owner > rec.owner):
		if own := r.own[rec.label]; own != nil {
			own.again = max(own.again, 1) // its owner has not received it
		}
		return false
	}
	r.known[rec.label] = rec
	delete(r.own, rec.label) // another registry has taken the key
	return old == nil || !old.in.Equal(rec.in)
}

// expire removes records that were not announced for too long. None is removed while this host
// cannot receive.
func (r *Registry) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	changed := false
	for label, rec := range r.known {
		switch {
		case rec.expires.IsZero():
		case r.problem != nil || now.Before(r.settled):
			rec.expires = later(rec.expires, now.Add(r.ttl))
		case now.After(rec.expires):
			delete(r.known, label)
			r.overflow = false
			changed = true
		}
	}
	if changed {
		r.signalLocked()
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// note records whether sending works. When it works again, the others get time to answer.
func (r *Registry) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil || (err == nil) == (r.problem == nil) {
		return
	}
	if r.problem = err; err != nil {
		r.problem = fmt.Errorf("mDNS: %w", err)
	} else {
		r.settled = time.Now().Add(gatherTime)
	}
	r.signalLocked()
}

func (r *Registry) inTrouble() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problem != nil
}

// state is the data that a watcher needs.
type state struct {
	list    []registry.Instance
	problem error
	full    bool
	wait    time.Duration // until the list is complete
	changed <-chan struct{}
}

// state returns the known instances of a service, which share nothing but their tags.
func (r *Registry) state(service string) state {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := state{problem: r.problem, full: r.overflow, wait: time.Until(r.settled), changed: r.changed, list: []registry.Instance{}}
	for _, rec := range r.known {
		if rec.in.Service == service {
			s.list = append(s.list, rec.in)
		}
	}
	registry.Sort(s.list)
	return s
}

// pause waits for a change or for the end of the time.
func (r *Registry) pause(ctx context.Context, changed <-chan struct{}, d time.Duration) error {
	var over <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-changed:
	case <-over:
	case <-ctx.Done():
	case <-r.ctx.Done():
	}
	return r.ended(ctx)
}

func (r *Registry) ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.ctx.Err() != nil {
		return registry.ErrClosed
	}
	return nil
}

// waitSettled waits until the others have had time to answer.
func (r *Registry) waitSettled(ctx context.Context) error {
	for {
		s := r.state("")
		if err := r.ended(ctx); err != nil {
			return because(err, s.problem)
		}
		if s.problem == nil && s.wait <= 0 {
			return nil
		}
		r.pause(ctx, s.changed, s.wait)
	}
}

// catchUp waits until this host has processed the messages it received before: it sends an empty
// message to the group, and waits until that comes back.
func (r *Registry) catchUp(ctx context.Context) {
	id := uint16(1 + rand.N(1<<16-1))
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: id}}
	message, err := m.Pack()
	if err != nil {
		return
	}
	back := make(chan struct{})
	r.mu.Lock()
	for r.echoes[id] != nil {
		id++
	}
	r.echoes[id] = back
	r.mu.Unlock()
	binary.BigEndian.PutUint16(message, id)
	if r.link.send(message) == nil {
		r.pause(ctx, back, gatherTime)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.echoes, id)
}

// echo wakes the goroutine that waits for the message with that id.
func (r *Registry) echo(id uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if back := r.echoes[id]; back != nil {
		close(back)
		delete(r.echoes, id)
	}
}

// Watch implements registry.Resolver. A failure to send is trouble; while this host cannot send,
// no record expires.
func (r *Registry) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if err := registry.CheckService(service); err != nil {
		return err
	}
	if trouble == nil {
		trouble = func(error) {}
	}
	if err := r.ended(ctx); err != nil {
		return err
	}
	var last []registry.Instance
	told := ""
	for current, caught, full := false, false, false; ; {
		s := r.state(service)
		switch {
		case s.problem != nil:
			if text := s.problem.Error(); text != told {
				trouble(s.problem)
				current, told = false, text
			}
		case s.wait > 0:
		case !current && !caught:
			r.catchUp(ctx)
			if err := r.ended(ctx); err != nil {
				return err
			}
			caught = true
			continue // with the records known so far
		default:
			caught = false
			if told = ""; s.full && !full {
				trouble(errFull)
				current = false
			}
			if full = s.full; !current || !registry.Equal(s.list, last) {
				update(s.list)
				current, last = true, s.list
			}
		}
		if err := r.pause(ctx, s.changed, s.wait); err != nil {
			return err
		}
		if s.wait <= 0 {
			if err := r.pause(ctx, nil, merge); err != nil {
				return err
			}
		}
	}
}

// Services implements registry.Lister. It fails at once while this host cannot send.
func (r *Registry) Services(ctx context.Context) ([]string, error) {
	for {
		if err := r.ended(ctx); err != nil {
			return nil, err
		}
		s := r.state("")
		if s.problem != nil {
			return nil, s.problem
		}
		if s.wait <= 0 {
			r.catchUp(ctx)
			return r.names(), r.ended(ctx)
		}
		r.pause(ctx, s.changed, s.wait)
	}
}

func (r *Registry) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, rec := range r.known {
		names = append(names, rec.in.Service)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
