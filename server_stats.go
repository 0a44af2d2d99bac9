package anser

import (
	"sync/atomic"

	"github.com/anser-rpc/anser/wire"
)

// stats counts what happened to a server.
type stats struct {
	accepted        atomic.Int64
	handshakeFailed atomic.Int64
	refused         atomic.Int64
	cancelled       atomic.Int64
	panics          atomic.Int64
	handoffs        atomic.Int64
	replayed        atomic.Int64
	denied          atomic.Int64
	cutOff          atomic.Int64
	wrongAddress    atomic.Int64
	strangers       authFailures
	closed          [wire.Internal + 1]atomic.Int64
	limitHits
}

// close counts a connection that ends because of the other side.
func (s *stats) close(r wire.Reason) {
	if r != wire.Normal && int(r) < len(s.closed) {
		s.closed[r].Add(1)
	}
}

// countRefusal counts a call that was not run; m is nil where its method is not served.
func (s *Server) countRefusal(m *method, e *Error) {
	s.stats.refused.Add(1)
	if m != nil {
		m.refused.Add(1)
	}
	if e.limit != noLimit {
		s.stats.hit(e.limit)
	}
}

// ServerStats is a snapshot of a server's counters; they only grow, but for Conns, InFlight and Streams.
type ServerStats struct {
	Conns           int   // connections now
	InFlight        int64 // calls now, but for those that run on the goroutine that reads their connection
	Streams         int64 // streams now; they are in InFlight too
	Accepted        int64 // connections
	HandshakeFailed int64 // connections that never got through their handshake
	Refused         int64 // calls that were not run
	Cancelled       int64 // calls whose caller cancelled them while they ran
	Panics          int64 // calls whose handler or codec panicked
	Handoffs        int64 // handlers that blocked the goroutine that reads and were moved away
	Replayed        int64 // calls with an idempotency key that ran before, and got the reply of then
	Denied          int64 // calls and streams that the [Authorizer] did not allow; those that did not run are in Refused too
	// CutOff counts the calls and streams that were ended while they were open because the identity of their client had
	// ended, was revoked, or did not allow them any more.
	CutOff       int64
	WrongAddress int64 // connections that [AllowFrom] and [DenyFrom] kept out; they are in no other counter
	// Unauthenticated counts the credentials and certificates that [Authenticate] did not take, those of renewals too, by
	// reason: "nothing shown", "malformed", "unknown scheme", "not valid", "expired", "other subject", "revoked".
	Unauthenticated map[string]int64
	// Closed counts the connections that the server closed because of the other side, by reason:
	// "BAD_FRAME", "FLOOD", "TIMEOUT"; see docs/protocol.md §10.
	Closed  map[string]int64
	Methods map[string]MethodStats // by canonical name
	// LimitsHit counts how often limits were hit, by the option that sets the limit: "MaxConns", "MaxMessage". What the
	// protocol fixes is called "first frame", "metadata", and "method names". docs/limits.md tells of each.
	LimitsHit map[string]int64
	// Memory is how many bytes of large requests are held now; see [MaxMemory].
	Memory int64
	// Keys is what a server with [Deduplicate] remembers now; LimitsHit["ReplyCache"] counts the calls that were
	// refused because there was no room.
	Keys KeyStats
	// Limits tells of the server's [AdaptiveLimit], and Limits.Shed of all methods together.
	Limits LimitStats
	// DeprecatedAliases counts the calls under each alias given with [DeprecatedAlias].
	DeprecatedAliases map[string]int64
	// Compression tells what compressing replies has been like, by method and algorithm.
	Compression []CompressionStats
}

// KeyStats is what a server remembers of calls with idempotency keys; see [ReplyCache].
type KeyStats struct {
	Known   int64 // keys of calls that run or ran
	Replies int64 // of them
	Clients int64 // that have keys
	Bytes   int64 // of keys and replies
}

// MethodStats are the counters of one method.
type MethodStats struct {
	Calls   int64 // handlers that were started
	Failed  int64 // of those, calls that ended with an error
	Refused int64 // calls that were not run
	Limits  LimitStats
}

// Stats returns the server's counters.
func (s *Server) Stats() ServerStats {
	if s.usable() != nil {
		return ServerStats{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := ServerStats{
		Conns: len(s.live), InFlight: s.inFlight.Load(), Streams: s.streams.Load(), Accepted: s.stats.accepted.Load(),
		HandshakeFailed: s.stats.handshakeFailed.Load(), Refused: s.stats.refused.Load(),
		Cancelled: s.stats.cancelled.Load(), Panics: s.stats.panics.Load(), Handoffs: s.stats.handoffs.Load(),
		Replayed: s.stats.replayed.Load(), LimitsHit: s.stats.limitHits.snapshot(), Memory: s.memory.held.Load(),
		Denied: s.stats.denied.Load(), CutOff: s.stats.cutOff.Load(), WrongAddress: s.stats.wrongAddress.Load(), Unauthenticated: s.stats.strangers.snapshot(),
		Closed: make(map[string]int64), Methods: make(map[string]MethodStats), DeprecatedAliases: make(map[string]int64),
	}
	for r := range s.stats.closed {
		if n := s.stats.closed[r].Load(); n > 0 {
			out.Closed[wire.Reason(r).String()] = n
		}
	}
	out.Limits = s.gate.stats()
	s.table.each(func(name string, m *method, a *alias) {
		switch {
		case a == nil:
			limits := m.limits.stats()
			out.Methods[name] = MethodStats{m.calls.Load(), m.failed.Load(), m.refused.Load(), limits}
			for p, n := range limits.Shed {
				out.Limits.Shed[p] += n
			}
			out.Compression = appendCompressionStats(out.Compression, name, &m.gains)
		case a.deprecated:
			out.DeprecatedAliases[name] = a.uses.Load()
		}
	})
	out.Keys = KeyStats(s.replies.Stats())
	sortCompression(out.Compression)
	return out
}
