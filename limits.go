package anser

import (
	"errors"
	"sync/atomic"
)

// limit identifies a limit of a server in [ServerStats.LimitsHit]. See docs/limits.md.
type limit uint8

const (
	noLimit limit = iota
	limitConns
	limitHandshakes
	limitHandshakeTime
	limitHello
	limitMessage
	limitExpansion
	limitMetadata
	limitMethods
	limitInFlight
	limitCalls
	limitStreams
	limitMemory
	limitReplies
	limitQueueTime
	limitAdaptive
	limitWriteStall
	limitReadTimeout
	numLimits
)

// limitNames are the keys of ServerStats.LimitsHit: the option that sets the limit, or a
// description of what the protocol limits.
var limitNames = [numLimits]string{
	limitConns: "MaxConns", limitHandshakes: "MaxHandshakes", limitHandshakeTime: "HandshakeTimeout",
	limitHello: "first frame", limitMessage: "MaxMessage", limitExpansion: "MaxExpansion",
	limitMetadata: "metadata", limitMethods: "method names", limitInFlight: "MaxInFlight", limitCalls: "MaxCalls",
	limitStreams: "MaxStreams", limitMemory: "MaxMemory", limitReplies: "ReplyCache",
	limitQueueTime: "MaxQueueTime", limitAdaptive: "AdaptiveLimit", limitWriteStall: "WriteStall",
	limitReadTimeout: "ReadTimeout",
}

// limitHits counts hits per limit.
type limitHits [numLimits]atomic.Int64

func (h *limitHits) hit(l limit) { h[l].Add(1) }

// snapshot returns the number of hits of the limits that were hit.
func (h *limitHits) snapshot() map[string]int64 {
	out := make(map[string]int64)
	for l := range h {
		if n := h[l].Load(); n > 0 && limit(l) != noLimit {
			out[limitNames[l]] = n
		}
	}
	return out
}

// raiseOn says how the limit for messages is raised on a side. The command replaces it for its own
// side by a flag.
func raiseOn(client bool) string {
	if client {
		return "raise it with anser.MaxMessage on the client"
	}
	return "raise it with anser.MaxMessage on the server"
}

// over returns the refusal of a call that exceeds a limit. The hit is counted when the refusal is
// sent.
func over(l limit, format string, args ...any) *Error {
	e := refusal(ResourceExhausted, format, args...)
	e.limit = l
	return e
}

// ErrTooLarge is in the chain of the error of a [ProtocolCall] whose message is over [MaxMessage]
// or [MaxExpansion], for protocols that have an answer of their own for it.
var ErrTooLarge = errors.New("the message is over the server's limit")
