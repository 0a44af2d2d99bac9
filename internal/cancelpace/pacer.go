// Package cancelpace bounds how fast calls on a connection may be cancelled. A server limits the
// CANCEL frames of a client, and a client paces them so that it stays below that limit.
package cancelpace

import (
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

const (
	// Pause is the time between two batches of delayed CANCELs.
	Pause = 5 * time.Millisecond

	pace  = 16_000 // sustained CANCELs per second of a client; below Rate
	slack = 1000   // dead entries of the queue before it is compacted
)

// Pacer paces the CANCELs of a client's connection. CANCELs that must wait are a list of ids; a
// call leaves it when its answer arrives or its deadline passes. The zero value is ready for use;
// the caller guards it.
type Pacer struct {
	bucket
	queue []waiting           // in the order of the calls' ends
	owed  map[uint64]struct{} // ids in the queue whose CANCEL is still owed
}

// waiting is a CANCEL that must wait.
type waiting struct {
	id    uint64
	until mono.Time // by which the server has ended the call by itself; 0: never
}

// Allow reports whether a CANCEL may be sent now, and counts it. maxCalls is the number of calls
// that the server allows on the connection.
func (p *Pacer) Allow(now mono.Time, maxCalls uint64) bool {
	return len(p.owed) == 0 && p.take(now, maxCalls)
}

func (p *Pacer) take(now mono.Time, maxCalls uint64) bool {
	p.drain(now, pace)
	if p.level+1 > float64(max(maxCalls, 1)) {
		return false
	}
	p.level++
	return true
}

// Add queues a CANCEL that must wait. The server ends the call by itself at the time until; 0
// means never.
func (p *Pacer) Add(id uint64, until mono.Time) {
	if p.owed == nil {
		p.owed = make(map[uint64]struct{})
	}
	if len(p.queue) > 2*len(p.owed)+slack { // most of the queue was answered
		p.compact()
	}
	p.owed[id] = struct{}{}
	p.queue = append(p.queue, waiting{id, until})
}

// compact drops entries that are no longer owed from the queue.
func (p *Pacer) compact() {
	kept := p.queue[:0]
	for _, w := range p.queue {
		if _, ok := p.owed[w.id]; ok {
			kept = append(kept, w)
		}
	}
	p.queue = kept
}

// Next returns the id of the next waiting CANCEL, if one may be sent now, and counts it.
func (p *Pacer) Next(now mono.Time, maxCalls uint64) (id uint64, ok bool) {
	for len(p.queue) > 0 {
		w := p.queue[0]
		if _, due := p.owed[w.id]; due && (w.until == 0 || now < w.until) {
			if !p.take(now, maxCalls) {
				return 0, false
			}
			p.pop(w.id)
			return w.id, true
		}
		p.pop(w.id)
	}
	p.queue = nil
	return 0, false
}

func (p *Pacer) pop(id uint64) {
	p.queue = p.queue[1:]
	delete(p.owed, id)
}

// Answered drops the CANCEL of a call that the server has answered in the meantime.
func (p *Pacer) Answered(id uint64) {
	if len(p.owed) > 0 {
		delete(p.owed, id)
	}
}

// Owed returns the number of CANCELs that wait.
func (p *Pacer) Owed() int { return len(p.owed) }

// Clear drops the CANCELs that wait.
func (p *Pacer) Clear() { p.queue, p.owed = nil, nil }
