package telemetry

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
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
	Pick     *Pick         `json:"pick,omitempty"` // on the client, if an instance was picked
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
	// SpanID is the id of the call within its trace, and ParentID that of the call or span that it
	// is part of. Without an observer that chooses ids, such as that of module telemetry/otel,
	// SpanID is empty.
	SpanID   string `json:"span_id,omitempty"`
	ParentID string `json:"parent_id,omitempty"`

	// Attempts are, on the client, the attempts of a call that failed or had more than one, oldest
	// first; of a call that succeeded all but the last.
	Attempts []anser.AttemptInfo `json:"attempts,omitempty"`
}

// Pick says why the last attempt of a call went to its instance.
type Pick struct {
	Reason   balance.Reason `json:"reason"`
	Balancer string         `json:"balancer,omitempty"`
	Route    string         `json:"route,omitempty"` // the router's choice of instances
}

// String returns the pick in words.
func (p *Pick) String() string {
	switch {
	case p == nil:
		return ""
	case p.Route != "":
		return p.Reason.String() + " (" + p.Balancer + ") of " + p.Route
	case p.Balancer != "":
		return p.Reason.String() + " (" + p.Balancer + ")"
	}
	return p.Reason.String()
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
			m.addAttempts(r, e.Attempts)
			if m.messages {
				r.Message = e.Message
			}
		} else if m.messages {
			r.Message = c.Err.Error()
		}
	} else {
		m.addAttempts(r, c.Attempts)
	}
	if !c.Server && c.Address != "" {
		r.Pick = &Pick{c.Pick.Reason, c.Pick.Balancer, c.Pick.Route}
	}
	r.setTrace(ctx, c)
	return r
}

func (m *Meter) addAttempts(r *Call, list []anser.AttemptInfo) {
	for _, a := range list {
		if !m.messages {
			a.Message = ""
		}
		r.Attempts = append(r.Attempts, a)
	}
}

// setTrace sets the ids. Without an observer that chooses them, the trace context is that of the
// caller.
func (r *Call) setTrace(ctx context.Context, c *anser.CallInfo) {
	own, parent := c.Trace, c.Parent
	if own.TraceID == [16]byte{} {
		own.TraceID, parent = traceOf(ctx, c), anser.Trace{}
		if t, ok := anser.TraceFrom(ctx); ok {
			parent = t
		}
	}
	if own.TraceID == [16]byte{} {
		return
	}
	r.TraceID, r.SpanID, r.ParentID = hex.EncodeToString(own.TraceID[:]), spanID(own), spanID(parent)
}

// traceOf returns the id of the trace of a call, or zero.
func traceOf(ctx context.Context, c *anser.CallInfo) [16]byte {
	if c.Trace.TraceID != [16]byte{} {
		return c.Trace.TraceID
	}
	t, _ := anser.TraceFrom(ctx)
	return t.TraceID
}

func spanID(t anser.Trace) string {
	if t.SpanID == [8]byte{} {
		return ""
	}
	return hex.EncodeToString(t.SpanID[:])
}

// keep makes a record of a call for its readers.
func (m *Meter) keep(ctx context.Context, c *anser.CallInfo, code anser.Code, known *method, worst, slow bool) {
	var tapped []*Tap
	if taps := m.taps.Load(); taps != nil {
		for _, t := range *taps {
			if t.wants(ctx, c, code) {
				tapped = append(tapped, t)
			}
		}
	}
	failed := c.Err != nil && m.failures.admits()
	slow = slow && m.slow.admits()
	traced := c.Trace.Flags&1 != 0 && m.traced.admits(c.Trace.TraceID)
	if !failed && !slow && !worst && !traced && len(tapped) == 0 {
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
	if traced {
		m.traced.add(r)
	}
	for _, t := range tapped {
		t.give(r)
	}
}

// ringSize is the number of calls that a ring keeps unless it has a size of its own.
const ringSize = 256

// ring keeps the latest of many records. It takes at most ringPace of them a second, so that a
// storm of failures costs little.
type ring struct {
	second  atomic.Int64 // of the time for which taken counts
	taken   atomic.Int64
	skipped atomic.Uint64
	size    int // 0: ringSize

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
	if len(r.calls) < cmp.Or(r.size, ringSize) {
		r.calls = append(r.calls, c)
		return
	}
	r.calls[r.next] = c
	r.next = (r.next + 1) % len(r.calls)
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

// isWorst reports whether no call of the minute was slower than the one that took d. If beats was
// true of that one before, the bound is d itself. Another call that took as long does not replace
// it: see set.
func (s *slowest) isWorst(d time.Duration) bool { return int64(d) >= s.bound.Load() }

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
