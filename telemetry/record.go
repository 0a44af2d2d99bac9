package telemetry

import (
	"context"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
)

// Call is the record of one call.
type Call struct {
	Time     time.Time     `json:"time"` // when it ended
	Side     string        `json:"side"` // "server" or "client"
	Target   string        `json:"target,omitempty"`
	Method   string        `json:"method"`
	Stream   bool          `json:"stream,omitempty"`
	Oneway   bool          `json:"oneway,omitempty"`
	Forward  bool          `json:"forward,omitempty"`
	Peer     string        `json:"peer,omitempty"`     // address of the other side
	Identity string        `json:"identity,omitempty"` // subject of the client, on a server
	Attempt  int           `json:"attempt,omitempty"`
	Code     anser.Code    `json:"code"`
	Outcome  anser.Outcome `json:"outcome,omitzero"` // of a call that failed
	Message  string        `json:"message,omitempty"`
	Duration time.Duration `json:"duration"` // nanoseconds, as the others
	Queue    time.Duration `json:"queue,omitempty"`
	Decode   time.Duration `json:"decode,omitempty"`
	Handle   time.Duration `json:"handle,omitempty"`
	Encode   time.Duration `json:"encode,omitempty"`

	RequestBytes int    `json:"request_bytes,omitempty"`
	ReplyBytes   int    `json:"reply_bytes,omitempty"`
	TraceID      string `json:"trace_id,omitempty"`

	// Attempts are, on the client and for a call that failed, the attempts that it made.
	Attempts []anser.AttemptInfo `json:"attempts,omitempty"`
}

// newCall returns the record of a call.
func (m *Meter) newCall(ctx context.Context, c *anser.CallInfo, code anser.Code, name string) *Call {
	r := &Call{
		Time: time.Now(), Side: "client", Target: TargetName(c.Target), Method: name, Stream: c.Stream, Oneway: c.Oneway, Forward: c.Forward,
		Peer: c.Address, Attempt: c.Attempt, Code: code, Duration: c.Duration, Queue: c.Queue, Decode: c.Decode,
		Handle: c.Handle, Encode: c.Encode, RequestBytes: c.RequestBytes, ReplyBytes: c.ReplyBytes,
	}
	if c.Server {
		r.Side = "server"
		if p, ok := anser.PeerFrom(ctx); ok {
			if p.Addr != nil {
				r.Peer = p.Addr.String()
			}
			if p.Identity != nil {
				r.Identity = p.Identity.Subject
			}
		}
	}
	if c.Err != nil {
		r.Outcome = anser.OutcomeOf(c.Err)
		if e, ok := errors.AsType[*anser.Error](c.Err); ok {
			for _, a := range e.Attempts {
				if !m.messages {
					a.Message = ""
				}
				r.Attempts = append(r.Attempts, a)
			}
			if m.messages {
				r.Message = e.Message
			}
		} else if m.messages {
			r.Message = c.Err.Error()
		}
	}
	if t, ok := anser.TraceFrom(ctx); ok {
		r.TraceID = hex.EncodeToString(t.TraceID[:])
	}
	return r
}

// keep makes a record of a call for its readers.
func (m *Meter) keep(ctx context.Context, c *anser.CallInfo, code anser.Code, known *method, worst, slow bool) {
	var tapped []*Tap
	if taps := m.taps.Load(); taps != nil {
		for _, t := range *taps {
			if t.wants(c, code) {
				tapped = append(tapped, t)
			}
		}
	}
	failed := c.Err != nil && m.failures.admits()
	slow = slow && m.slow.admits()
	if !failed && !slow && !worst && len(tapped) == 0 {
		return
	}
	r := m.newCall(ctx, c, code, known.name)
	if failed {
		m.failures.add(r)
	}
	if slow {
		m.slow.add(r)
	}
	if worst {
		known.slowest.set(r)
	}
	for _, t := range tapped {
		t.give(r)
	}
}

// ringSize is the number of calls that a ring keeps.
const ringSize = 256

// ring keeps the latest of many records. It takes at most ringPace of them a second, so that a
// storm of failures costs little.
type ring struct {
	second  atomic.Int64 // of the time for which taken counts
	taken   atomic.Int64
	skipped atomic.Uint64

	mu    sync.Mutex // guards the fields below
	calls []*Call
	next  int
}

const ringPace = 500

// admits reports whether the ring takes another record now.
func (r *ring) admits() bool {
	if now := time.Now().Unix(); r.second.Swap(now) != now {
		r.taken.Store(0)
	}
	if r.taken.Add(1) > ringPace {
		r.skipped.Add(1)
		return false
	}
	return true
}

func (r *ring) add(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) < ringSize {
		r.calls = append(r.calls, c)
		return
	}
	r.calls[r.next] = c
	r.next = (r.next + 1) % ringSize
}

// list returns the records, the latest first.
func (r *ring) list() []*Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*Call, 0, len(r.calls))
	for i := range r.calls {
		out = append(out, r.calls[(r.next+len(r.calls)-1-i)%len(r.calls)])
	}
	return out
}

// slowest is the slowest call of a method in the current minute and in the one before.
type slowest struct {
	bound  atomic.Int64 // duration that a call must exceed
	minute atomic.Int64

	mu        sync.Mutex // guards the fields below
	now, then *Call
}

// beats reports whether a call is slower than all others of the minute.
func (s *slowest) beats(d time.Duration) bool {
	if int64(d) <= s.bound.Load() {
		return false
	}
	for {
		old := s.bound.Load()
		if int64(d) <= old {
			return false
		}
		if s.bound.CompareAndSwap(old, int64(d)) {
			return true
		}
	}
}

func (s *slowest) set(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turnLocked(c.Time)
	if s.now == nil || c.Duration > s.now.Duration {
		s.now = c
	}
}

// turnLocked begins a new minute, if it is time.
func (s *slowest) turnLocked(now time.Time) {
	minute := now.Unix() / 60
	switch s.minute.Swap(minute) {
	case minute:
		return
	case minute - 1:
		s.then = s.now
	default:
		s.then = nil
	}
	s.now = nil
}

// latest returns the slowest call of the last one to two minutes, or nil.
func (s *slowest) latest() *Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.minute.Load()
	s.turnLocked(time.Now())
	if s.minute.Load() != before {
		s.bound.Store(0)
	}
	if s.now == nil || s.then != nil && s.then.Duration > s.now.Duration {
		return s.then
	}
	return s.now
}

// Filter selects calls for a [Tap].
type Filter struct {
	Side    string        // "server", "client", or "" for both
	Method  string        // a name, or a prefix that ends with "*"; "" for all
	Failed  bool          // only calls that failed
	Slower  time.Duration // only calls that took at least as long
	Sampled float64       // fraction of the calls that pass; 0 means all
}

// Tap gets calls as they happen.
type Tap struct {
	// Calls gets the records. What finds no room in it is dropped.
	Calls   <-chan *Call
	calls   chan *Call
	filter  Filter
	count   atomic.Uint64 // calls that the filter selects, if it takes a fraction of them
	dropped atomic.Uint64
}

// maxTaps is the number of taps of a meter.
const maxTaps = 16

// ErrTooManyTaps is the error of [Meter.Tap] if there are 16 already.
var ErrTooManyTaps = errors.New("there are 16 taps already: end one of them first")

// Tap returns a tap for the calls that the filter selects, with room for n of them. It ends with
// Untap.
func (m *Meter) Tap(f Filter, n int) (*Tap, error) {
	t := &Tap{filter: f, calls: make(chan *Call, max(n, 1))}
	t.Calls = t.calls
	m.tapping.Lock()
	defer m.tapping.Unlock()
	var list []*Tap
	if old := m.taps.Load(); old != nil {
		list = append(list, *old...)
	}
	if len(list) >= maxTaps {
		return nil, ErrTooManyTaps
	}
	list = append(list, t)
	m.taps.Store(&list)
	return t, nil
}

// Untap ends a tap. Its channel is not closed.
func (m *Meter) Untap(t *Tap) {
	m.tapping.Lock()
	defer m.tapping.Unlock()
	var list []*Tap
	if old := m.taps.Load(); old != nil {
		for _, o := range *old {
			if o != t {
				list = append(list, o)
			}
		}
	}
	if len(list) == 0 {
		m.taps.Store(nil)
		return
	}
	m.taps.Store(&list)
}

// Dropped returns how many calls found no room.
func (t *Tap) Dropped() uint64 { return t.dropped.Load() }

// wants reports whether the filter selects a call.
func (t *Tap) wants(c *anser.CallInfo, code anser.Code) bool {
	f := &t.filter
	if f.Side != "" && (f.Side == "server") != c.Server || f.Failed && code == anser.OK || c.Duration < f.Slower {
		return false
	}
	if prefix, ok := strings.CutSuffix(f.Method, "*"); ok && !strings.HasPrefix(c.Method, prefix) || !ok && f.Method != "" && f.Method != c.Method {
		return false
	}
	if !(f.Sampled > 0 && f.Sampled < 1) {
		return true
	}
	n := float64(t.count.Add(1))
	return math.Floor(n*f.Sampled) > math.Floor((n-1)*f.Sampled)
}

func (t *Tap) give(c *Call) {
	select {
	case t.calls <- c:
	default:
		t.dropped.Add(1)
	}
}
