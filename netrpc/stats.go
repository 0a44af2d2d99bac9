package netrpc

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/anser-rpc/anser"
)

// stats are the counters of a server.
type stats struct {
	accepted        atomic.Int64
	refusedConns    atomic.Int64
	unauthenticated atomic.Int64
	broken          atomic.Int64
	refused         atomic.Int64
	panics          atomic.Int64
}

// Stats holds the counters of a server since its creation.
type Stats struct {
	Conns           int   // open connections
	Accepted        int64 // connections served
	RefusedConns    int64 // connections over Server.MaxConns, and replaced ones at Server.MaxHandshakes
	Unauthenticated int64 // rejections by Server.Authenticate
	Broken          int64 // connections closed because of invalid, or missing, data
	InFlight        int64 // calls that run or wait for their turn
	Refused         int64 // calls that did not run: unknown methods, bad requests, limits, shutdown
	Panics          int64 // in methods, and in types that encode or decode themselves; with Server.Anser including those of its calls
	Methods         []MethodStats
}

// MethodStats holds the counters of one method. Methods are sorted by name.
type MethodStats struct {
	Name    string
	Calls   int64 // by all names; with Server.Anser over all protocols
	Failed  int64 // calls that ran and returned an error
	Aliases []AliasStats
}

// AliasStats holds the counters of another name of a method.
type AliasStats struct {
	Name       string
	Deprecated bool
	Calls      int64
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	if s == nil {
		return Stats{}
	}
	s.mu.Lock()
	conns, host := len(s.sessions), s.hostLocked()
	s.mu.Unlock()
	var ran anser.ServerStats
	if host != nil {
		ran = host.Stats()
	}
	st := Stats{
		Conns: conns, Accepted: s.stats.accepted.Load(), RefusedConns: s.stats.refusedConns.Load(),
		Unauthenticated: s.stats.unauthenticated.Load(), Broken: s.stats.broken.Load(),
		InFlight: s.inFlight.Load(), Refused: s.stats.refused.Load(), Panics: s.stats.panics.Load() + ran.Panics,
	}
	aliases := make(map[*method][]AliasStats)
	var methods []*method
	for name, e := range s.table().methods {
		if e.alias {
			aliases[e.method] = append(aliases[e.method], AliasStats{Name: name, Deprecated: e.deprecated, Calls: e.uses.Load()})
			continue
		}
		methods = append(methods, e.method)
	}
	slices.SortFunc(methods, func(a, b *method) int { return strings.Compare(a.name, b.name) })
	for _, m := range methods {
		slices.SortFunc(aliases[m], func(a, b AliasStats) int { return cmp.Compare(a.Name, b.Name) })
		st.Methods = append(st.Methods, MethodStats{Name: m.name, Calls: ran.Methods[m.name].Calls, Failed: ran.Methods[m.name].Failed, Aliases: aliases[m]})
	}
	return st
}
