package anser

import (
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// MethodStatus describes how a server runs a method. Its counters are in [MethodStats].
type MethodStatus struct {
	Name       string   // canonical
	Aliases    []string // other names, sorted
	Stream     bool
	Oneway     bool
	Idempotent bool
	// Deduplicates says that a call with an idempotency key runs once; see [Deduplicate].
	Deduplicates bool
	Builtin      bool // the server adds it by itself
	Forwarded    bool // its calls are forwarded; see [Forward]

	// Inline says that calls run on the reader goroutine of their connection now, and Fixed that an
	// option or a limit has decided that.
	Inline, Fixed bool
	// Run is the average time of a run, as far as the server has learned it: a run above 200 µs
	// counts as that. It is 0 for a stream, and where Fixed is true.
	Run time.Duration

	MaxInFlight  int           // 0: no limit; see [MaxInFlight]
	MaxQueueTime time.Duration // 0: no limit; see [MaxQueueTime]
}

// MethodStatus returns the methods of the server, sorted by name. Methods that only other protocols
// call are left out.
func (s *Server) MethodStatus() (list []MethodStatus) {
	if s.usable() != nil {
		return nil
	}
	now := mono.Now()
	aliases := make(map[*method][]string)
	var methods []*method
	s.table.each(func(name string, m *method, a *alias) {
		switch {
		case m.foreign:
		case a != nil:
			aliases[m] = append(aliases[m], name)
		default:
			methods = append(methods, m)
		}
	})
	for _, m := range methods {
		list = append(list, m.status(now, aliases[m], false))
	}
	if s.o.forwarder != nil {
		s.o.forwarder.each(func(m *method) { list = append(list, m.status(now, nil, true)) })
	}
	return list
}

func (m *method) status(now mono.Time, aliases []string, forwarded bool) MethodStatus {
	st := MethodStatus{
		Name: m.name, Aliases: aliases, Stream: m.converse != nil, Oneway: m.oneway, Idempotent: m.idempotent,
		Deduplicates: m.once, Builtin: m.builtin, Forwarded: forwarded,
	}
	if !forwarded {
		st.Fixed = m.mode != runLearned || st.Stream
		st.Inline = !st.Stream && m.inline(now)
	}
	if !st.Fixed && !forwarded {
		st.Run = m.placement.Average()
	}
	if g := m.limits; g != nil {
		st.MaxInFlight, st.MaxQueueTime = int(g.limit), g.queueTime
	}
	return st
}
