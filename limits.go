package anser

import (
	"sync/atomic"
)

// limit is one whose hits a server counts; docs/limits.md tells of all.
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

// limitNames are the keys of ServerStats.LimitsHit: the option that sets the limit, or what is limited where
// the protocol does.
var limitNames = [numLimits]string{
	limitConns: "MaxConns", limitHandshakes: "MaxHandshakes", limitHandshakeTime: "HandshakeTimeout",
	limitHello: "first frame", limitMessage: "MaxMessage", limitExpansion: "MaxExpansion",
	limitMetadata: "metadata", limitMethods: "method names", limitInFlight: "MaxInFlight", limitCalls: "MaxCalls",
	limitStreams: "MaxStreams", limitMemory: "MaxMemory", limitReplies: "ReplyCache",
	limitQueueTime: "MaxQueueTime", limitAdaptive: "AdaptiveLimit", limitWriteStall: "WriteStall",
	limitReadTimeout: "ReadTimeout",
}

// limitHits counts hits by limit.
type limitHits [numLimits]atomic.Int64

func (h *limitHits) hit(l limit) { h[l].Add(1) }

// snapshot returns the limits that were hit.
func (h *limitHits) snapshot() map[string]int64 {
	out := make(map[string]int64)
	for l := range h {
		if n := h[l].Load(); n > 0 && limit(l) != noLimit {
			out[limitNames[l]] = n
		}
	}
	return out
}

// over makes the refusal of a call that is over a limit. It counts when it is sent.
func over(l limit, format string, args ...any) *Error {
	e := refusal(ResourceExhausted, format, args...)
	e.limit = l
	return e
}
