package anser

import (
	"context"
	"sync"
)

// contextWatches watches the contexts of calls without a goroutine, and ends the calls with them.
// Calls whose contexts end together share one entry, so that a million calls with one context cost
// the context one function, not a million.
type contextWatches struct {
	mu sync.Mutex // guards the fields below
	by map[<-chan struct{}]*contextWatch
}

// contextWatch is a list of calls whose contexts end together.
type contextWatch struct {
	first *pending
	stop  func() bool
}

func (w *contextWatches) add(p *pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.over.Load() || p.watch != nil {
		return
	}
	x := w.by[p.ends]
	if x == nil {
		x = new(contextWatch)
		if w.by == nil {
			w.by = make(map[<-chan struct{}]*contextWatch)
		}
		w.by[p.ends] = x
		x.stop = context.AfterFunc(p.ctx, func() { w.end(p.ends, x) })
	}
	p.watch, p.next = x, x.first
	if x.first != nil {
		x.first.prev = p
	}
	x.first = p
}

// remove forgets a call that is over.
func (w *contextWatches) remove(p *pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := p.watch
	if x == nil {
		return
	}
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		x.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
	p.watch, p.prev, p.next = nil, nil, nil
	if x.first == nil && w.by[p.ends] == x {
		delete(w.by, p.ends)
		x.stop()
	}
}

// end ends the calls whose contexts have ended.
func (w *contextWatches) end(ends <-chan struct{}, x *contextWatch) {
	w.mu.Lock()
	if w.by[ends] == x {
		delete(w.by, ends)
	}
	var all []*pending
	for p := x.first; p != nil; p = p.next {
		all = append(all, p)
	}
	w.mu.Unlock()
	for _, p := range all {
		p.stop()
	}
}
