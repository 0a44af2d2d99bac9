package nacos

import (
	"maps"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// insistence is how long Nacos must list an older state of an instance before a watch accepts it.
// The owner of the instance, if it lives, writes it again within one renewal.
const insistence = time.Minute

// history is what a watch has seen. A later read of Nacos can return an older state: Nacos may
// execute a write that timed out and was repeated, after newer ones, and a member of a cluster may
// be behind the one that answered before. The zero value is ready for use.
type history struct {
	newest map[origin]sighting
	shown  map[string]registry.Instance // the last list, by key
}

// origin identifies the states of an instance whose stamps can be compared: one process wrote them,
// with one clock.
type origin struct{ key, owner string }

// sighting is the newest stamp of an origin.
type sighting struct {
	stamp int64
	at    time.Time // when Nacos last listed it
}

// list is like listOf, but in place of an instance that is older than one of the same origin seen
// before, it returns the instance that the last list had under the key, if any.
func (s *history) list(service string, all []nacosInstance, now time.Time) ([]registry.Instance, error) {
	if s.newest == nil {
		s.newest = make(map[origin]sighting)
	}
	maps.DeleteFunc(s.newest, func(_ origin, seen sighting) bool { return now.Sub(seen.at) >= insistence })
	var outdated []string
	found, problem := byKey(service, all, func(key string, h nacosInstance) bool {
		id := origin{key, h.Metadata[ownerKey]}
		if id.owner == "" { // of another program
			return true
		}
		if h.stamp() < s.newest[id].stamp {
			outdated = append(outdated, key)
			return false
		}
		s.newest[id] = sighting{h.stamp(), now}
		return true
	})
	for _, key := range outdated {
		in, shown := s.shown[key]
		if _, replaced := found[key]; shown && !replaced {
			found[key] = in
		}
	}
	s.shown = found
	return sorted(found), problem
}
