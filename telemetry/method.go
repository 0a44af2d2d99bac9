package telemetry

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/striped"
)

// method has what was measured of a method. A call needs the first two fields, which are in one
// cache line.
type method struct {
	parts     []part // a power of 2
	slowest   slowest
	name      string
	exemplars [maxCodes]atomic.Pointer[Exemplar]
}

// maxCodes is the number of codes that are distinguished; all others count as the last.
const maxCodes = 32

// maxParts limits the memory of a method.
const maxParts = 16

// part is what was counted on a processor. Its lock is nearly always free, and one lock costs less
// than an atomic addition to each number.
type part struct {
	mu sync.Mutex // guards the fields below
	ok times      // of calls without an error

	// Of the calls that a server ran.
	requestBytes, replyBytes uint64
	queue, handle            time.Duration

	failed                     []times // by the place of the code
	retried, refused, replayed uint64
	decode, encode             time.Duration // of what a server ran

	_ [8]byte // two cache lines; most calls need the first only
}

// times are the durations of calls that ended with the same code.
type times struct {
	sum    time.Duration
	counts *[buckets]uint64 // nil without calls
}

func newMethod(name string) *method {
	return &method{name: name, parts: make([]part, min(striped.Stripes(), maxParts))}
}

// placeOf returns where numbers of a code are.
func placeOf(code anser.Code) int { return min(int(code), maxCodes-1) }

// lock returns a part that the caller has locked.
func (m *method) lock() *part {
	at := int(striped.Place())
	if p := &m.parts[at&(len(m.parts)-1)]; p.mu.TryLock() {
		return p
	}
	return m.lockOther(at)
}

// lockOther returns a part that is free, or else waits for the one of a place.
//
//go:noinline
func (m *method) lockOther(at int) *part {
	for i := 1; i < len(m.parts); i++ {
		if p := &m.parts[(at+i)&(len(m.parts)-1)]; p.mu.TryLock() {
			return p
		}
	}
	p := &m.parts[at&(len(m.parts)-1)]
	p.mu.Lock()
	return p
}

// place says where a call ended.
type place uint8

const (
	onClient place = iota
	ran            // on a server
	refused        // by a server
)

func where(server, isRefused bool) place {
	switch {
	case !server:
		return onClient
	case isRefused:
		return refused
	}
	return ran
}

// count counts a call, and reports whether it is one of a sample: of a bucket, the first three are,
// and every 64th. handle is the time of its handler.
func (m *method) count(code anser.Code, at place, c *anser.Measurement, handle time.Duration) (sampled bool) {
	bucket := indexOf(c.Duration) - firstIndex
	p := m.lock()
	t := &p.ok
	if code != anser.OK || t.counts == nil {
		t = p.timesOf(placeOf(code))
	}
	n := t.note(c.Duration, bucket)
	if c.Attempt > 0 {
		p.retried++
	}
	switch at {
	case refused:
		p.refused++
	case ran:
		p.requestBytes += uint64(max(c.RequestBytes, 0))
		p.replyBytes += uint64(max(c.ReplyBytes, 0))
		p.queue += c.Queue
		p.handle += handle
	}
	p.mu.Unlock()
	return n < 4 || n&63 == 0
}

// note counts a duration, and returns how many are in its bucket. There is room for it.
func (t *times) note(d time.Duration, bucket int) uint64 {
	t.sum += max(d, 0)
	n := &t.counts[bucket]
	*n++
	return *n
}

// timesOf returns the durations of calls with the code of a place, with room for them.
//
//go:noinline
func (p *part) timesOf(at int) *times {
	t := &p.ok
	if at != placeOf(anser.OK) {
		if at >= len(p.failed) {
			p.failed = slices.Concat(p.failed, make([]times, at+1-len(p.failed)))
		}
		t = &p.failed[at]
	}
	if t.counts == nil {
		t.counts = new([buckets]uint64)
	}
	return t
}

// countRest counts what only calls have that were followed and ran on a server.
func (m *method) countRest(c *anser.CallInfo) {
	if !c.Replayed && c.Decode == 0 && c.Encode == 0 {
		return
	}
	p := m.lock()
	defer p.mu.Unlock()
	if c.Replayed {
		p.replayed++
	}
	p.decode += c.Decode
	p.encode += c.Encode
}

// snapshot returns what was counted so far. A call is in all numbers or in none, but for what
// countRest counts.
func (m *method) snapshot(server bool, target string) Method {
	out := Method{Server: server, Target: target, Name: m.name, Slowest: m.slowest.latest()}
	var all [maxCodes]times
	for i := range m.parts {
		m.parts[i].addTo(&out, &all)
	}
	for at := range all {
		if t := &all[at]; t.counts != nil {
			out.Codes = append(out.Codes, Series{anser.Code(at), t.histogram(), m.exemplars[at].Load()})
		}
	}
	return out
}

// addTo adds what was counted to out, and durations to all.
func (p *part) addTo(out *Method, all *[maxCodes]times) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out.Retried += p.retried
	out.Refused += p.refused
	out.Replayed += p.replayed
	out.RequestBytes += p.requestBytes
	out.ReplyBytes += p.replyBytes
	out.Queue += p.queue
	out.Decode += p.decode
	out.Handle += p.handle
	out.Encode += p.encode
	all[anser.OK].add(&p.ok)
	for at := range p.failed {
		all[at].add(&p.failed[at])
	}
}

func (t *times) add(o *times) {
	if o.counts == nil {
		return
	}
	t.sum += o.sum
	if t.counts == nil {
		t.counts = new(*o.counts)
		return
	}
	for i, n := range o.counts {
		t.counts[i] += n
	}
}

func (t *times) histogram() Histogram {
	h := Histogram{Sum: t.sum}
	for _, n := range t.counts {
		h.Count += n
	}
	h.set(t.counts[:], 0)
	return h
}
