package anser

import (
	"sync/atomic"

	"github.com/anser-rpc/anser/wire"
)

// stats are the counters of a server.
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

// close counts a connection that ends because of the peer.
func (s *stats) close(r wire.Reason) {
	if r != wire.Normal && int(r) < len(s.closed) {
		s.closed[r].Add(1)
	}
}

// countRefusal counts a call that was not run; m is nil if its method is not served.
func (s *Server) countRefusal(m *method, e *Error) {
	s.stats.refused.Add(1)
	if m != nil {
		m.refused.Add(1)
	}
	if e.limit != noLimit {
		s.stats.hit(e.limit)
	}
}

// refused counts and reports a call that was not run, and that no observer knows yet. ctx is nil
// if the call has no context, and m if its method is not served.
func (s *Server) refused(ctx *callContext, m *method, e *Error) {
	s.countRefusal(m, e)
	if s.o.observers.followCalls() {
		s.observeRefusal(ctx, m, e)
	}
}

// ServerStats is a snapshot of a server's counters. They only grow, except for Conns, InFlight,
// Streams, Memory, Keys, and the current values in Limits.
type ServerStats struct {
	Conns           int   // open connections
	InFlight        int64 // running calls, except those on the reader goroutine of their connection
	Streams         int64 // open streams; included in InFlight
	Accepted        int64 // connections accepted
	HandshakeFailed int64 // connections whose handshake failed
	Refused         int64 // calls that were not run
	Cancelled       int64 // calls that their callers cancelled while they ran
	Panics          int64 // calls whose handler or codec panicked
	Handoffs        int64 // handlers that blocked the reader goroutine and were moved off it
	Replayed        int64 // calls with an idempotency key that got the reply of an earlier run
	// Denied counts the calls and streams that the [Authorizer] did not allow; the ones that did
	// not run are also in Refused.
	Denied int64
	// CutOff counts the calls and streams that were ended while open because the identity of their
	// client had ended, was revoked, or no longer allowed them.
	CutOff int64
	// WrongAddress counts the connections that [AllowFrom] and [DenyFrom] refused; they are in no
	// other counter.
	WrongAddress int64
	// Unauthenticated counts the credentials and certificates that [Authenticate] did not accept,
	// including renewals, by reason: "nothing shown", "malformed", "unknown scheme", "not valid",
	// "expired", "other subject", "revoked".
	Unauthenticated map[string]int64
	// Closed counts the connections that the server closed because of the peer, by reason:
	// "BAD_FRAME", "FLOOD", "TIMEOUT"; see docs/protocol.md §10.
	Closed  map[string]int64
	Methods map[string]MethodStats // by canonical name
	// LimitsHit counts how often limits were hit, by the option that sets the limit: "MaxConns",
	// "MaxMessage". Limits of the protocol are called "first frame", "metadata", and "method
	// names". See docs/limits.md.
	LimitsHit map[string]int64
	// Memory is the number of bytes of large requests held now; see [MaxMemory].
	Memory int64
	// Keys describes the idempotency keys that a server with [Deduplicate] remembers now;
	// LimitsHit["ReplyCache"] counts the calls that were refused for lack of room.
	Keys KeyStats
	// Limits describes the server's [AdaptiveLimit]; Limits.Shed includes all methods.
	Limits LimitStats
	// DeprecatedAliases counts the calls under each alias given with [DeprecatedAlias].
	DeprecatedAliases map[string]int64
	// Compression has the counters of compressed replies, by method and algorithm.
	Compression []CompressionStats
}

// KeyStats describes the idempotency keys that a server remembers; see [ReplyCache].
type KeyStats struct {
	Known   int64 // keys of calls that are running or have run
	Replies int64 // replies to these calls
	Clients int64 // clients that have keys
	Bytes   int64 // size of keys and replies
}

// MethodStats are the counters of one method.
type MethodStats struct {
	Calls   int64 // handlers started
	Failed  int64 // of these, calls that ended with an error
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
		Conns: len(s.live), InFlight: s.inFlight.Taken(), Streams: s.streams.Load(), Accepted: s.stats.accepted.Load(),
		HandshakeFailed: s.stats.handshakeFailed.Load(), Refused: s.stats.refused.Load(),
		Cancelled: s.stats.cancelled.Load(), Panics: s.stats.panics.Load(), Handoffs: s.stats.handoffs.Load(),
		Replayed: s.stats.replayed.Load(), LimitsHit: s.stats.limitHits.snapshot(), Memory: s.memory.Held(),
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
	if s.o.forwarder != nil {
		s.o.forwarder.each(func(m *method) {
			sum, served := out.Methods[m.name] // for other protocols
			if !served {
				sum.Limits = m.limits.stats()
			}
			sum.Calls, sum.Failed, sum.Refused = sum.Calls+m.calls.Load(), sum.Failed+m.failed.Load(), sum.Refused+m.refused.Load()
			out.Methods[m.name] = sum
		})
	}
	out.Keys = KeyStats(s.replies.Stats())
	sortCompression(out.Compression)
	return out
}
