package route

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
)

// RecentMethod is the method that [Recorder.Serve] registers for recent calls. Its request is
// [RecentRequest] and its reply [RecentReply], in the JSON codec or MessagePack.
const RecentMethod = "Route.Recent"

// RecentRequest asks for the sampled calls of a service.
type RecentRequest struct {
	Service string `json:"service"` // "" for all
}

// RecentReply holds the sampled calls of the last minute.
type RecentReply struct {
	Calls []Sample `json:"calls"` // oldest first
	Keys  []string `json:"keys"`  // recorded metadata keys in addition to the keys in rules
}

// Sample is a recorded call.
type Sample struct {
	Time     time.Time         `json:"time"`
	Service  string            `json:"service"`
	Method   string            `json:"method"`
	Metadata map[string]string `json:"metadata,omitempty"` // only keys that rules use, or that were passed to NewRecorder
	Keys     []string          `json:"keys,omitempty"`     // the recorded keys, present or not
	Caller   Caller            `json:"caller"`
	Address  string            `json:"address,omitempty"` // of the instance that answered; "" for a failed call or a mock
	Failed   bool              `json:"failed,omitempty"`
	Version  uint64            `json:"version,omitempty"` // of the rules
}

// Limits of a Recorder.
const (
	sampleEvery = 50 * time.Millisecond
	sampleFor   = time.Minute
	maxSampled  = 4096
	maxValue    = 256 // bytes of a metadata value
)

// Recorder samples calls of clients, so that a change of the rules can be tested with them: see
// [DryRun]. It keeps those of the last minute: in total one per 50 ms over all clients, with only
// the metadata values that rules use. Create it with [NewRecorder] and pass it to clients with
// [Record]. It is safe for concurrent use.
type Recorder struct {
	keys  []string
	ready atomic.Bool // a call may be sampled

	mu   sync.Mutex // guards the fields below
	ring []Sample
	next int
}

// NewRecorder returns a recorder that also keeps the values of the given metadata keys, for
// testing rules that use them. Values may be secret: name only keys that may be disclosed.
func NewRecorder(keys ...string) *Recorder {
	r := new(Recorder)
	for _, k := range keys {
		r.keys = append(r.keys, strings.ToLower(k))
	}
	slices.Sort(r.keys)
	r.ready.Store(true)
	return r
}

// Recent returns the sampled calls of the last minute to the service, or with "" to all, oldest
// first.
func (r *Recorder) Recent(service string) []Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Sample
	since := time.Now().Add(-sampleFor)
	for i := range r.ring {
		s := r.ring[(r.next+i)%len(r.ring)]
		if s.Time.After(since) && (service == "" || s.Service == service) {
			list = append(list, s)
		}
	}
	return list
}

// Serve adds the method [RecentMethod] to the server, which returns the result of Recent to
// authorized callers.
func (r *Recorder) Serve(s *anser.Server) error {
	if r == nil {
		return errors.New("route.Recorder.Serve: the recorder is nil: make it with route.NewRecorder")
	}
	keys := append([]string{}, r.keys...)
	return anser.Handle(s, RecentMethod, func(_ context.Context, q *RecentRequest) (*RecentReply, error) {
		return &RecentReply{Calls: append([]Sample{}, r.Recent(q.Service)...), Keys: keys}, nil // not null in JSON
	}, anser.Idempotent())
}

// due reports whether a call may be sampled. A nil recorder samples none.
func (r *Recorder) due() bool { return r != nil && r.ready.Load() }

// begin claims the right to sample a call.
func (r *Recorder) begin() (at time.Time, ok bool) {
	if !r.due() || !r.ready.CompareAndSwap(true, false) {
		return time.Time{}, false
	}
	// A timer per sample instead of a ticker: an idle process is not woken.
	time.AfterFunc(sampleEvery, func() { r.ready.Store(true) })
	return time.Now(), true
}

// end records a call.
func (r *Recorder) end(at time.Time, from *router, ctx context.Context, inv *anser.Invocation, err error) {
	from.mu.Lock()
	version := from.status.Version
	from.mu.Unlock()
	s := Sample{
		Time: at, Service: from.service, Method: strings.Clone(inv.Method), Caller: from.caller, Address: inv.Address,
		Failed: err != nil, Version: version,
	}
	if s.Service == "" {
		s.Service = from.s.Service()
	}
	s.Keys = keysOf(from.plan.Load().rules, r.keys)
	for _, k := range s.Keys {
		if v := anser.OutgoingValue(ctx, k); v != "" {
			if s.Metadata == nil {
				s.Metadata = make(map[string]string)
			}
			s.Metadata[k] = strings.Clone(v[:min(len(v), maxValue)])
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) < maxSampled {
		r.ring = append(r.ring, s)
		return
	}
	r.ring[r.next] = s
	r.next = (r.next + 1) % maxSampled
}

// keysOf returns the metadata keys that the rules use, and more.
func keysOf(rules *RuleSet, more []string) []string {
	keys := slices.Clone(more)
	when := func(m *Match) {
		for k := range m.Metadata {
			keys = append(keys, k)
		}
	}
	for i := range rules.Tags {
		keys = append(keys, rules.Tags[i].Metadata)
	}
	for i := range rules.Conditions {
		when(&rules.Conditions[i].When)
	}
	for i := range rules.Split {
		when(&rules.Split[i].When)
		keys = append(keys, rules.Split[i].By)
	}
	for i := range rules.Methods {
		when(&rules.Methods[i].When)
	}
	for i := range rules.Mocks {
		when(&rules.Mocks[i].When)
	}
	for i := range rules.Faults {
		when(&rules.Faults[i].When)
	}
	slices.Sort(keys)
	return slices.DeleteFunc(slices.Compact(keys), func(k string) bool { return k == "" })
}
