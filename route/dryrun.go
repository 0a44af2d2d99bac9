package route

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// Report is the effect that rules would have had on recorded calls.
type Report struct {
	Calls   int          `json:"calls"`   // number of calls examined
	Gone    int          `json:"gone"`    // not examined, because their instance no longer exists
	Moved   int          `json:"moved"`   // calls that would not have reached their instance
	Failed  int          `json:"failed"`  // calls for which no instance would have been left
	Mocked  int          `json:"mocked"`  // calls that a mock would have answered
	Faulted int          `json:"faulted"` // calls that a fault could have affected
	Moves   []Move       `json:"moves,omitempty"`
	Unknown []string     `json:"unknown,omitempty"` // metadata keys that the rules use but that were not recorded
	Effects []RuleEffect `json:"effects"`
}

// Move is a group of calls of a method that would have gone elsewhere.
type Move struct {
	Method string   `json:"method"`
	From   string   `json:"from"`
	To     []string `json:"to"` // keys of the instances among which the balancer would have chosen
	Calls  int      `json:"calls"`
}

// RuleEffect lists the instances that a rule currently selects.
type RuleEffect struct {
	Rule      string   `json:"rule"`
	Instances []string `json:"instances"` // none is usually a mistake
}

// DryRun applies the rules to recorded calls, with the registry's list of instances. Calls without
// an instance, because they failed, are left out, and so are calls whose instance no longer
// exists. If a share is random, each call uses a fixed number, so that results are reproducible.
// All instances count as reachable.
func DryRun(next *RuleSet, calls []Sample, instances []registry.Instance) *Report {
	rep := &Report{Effects: next.effects(instances)}
	moves := make(map[string]*Move)
	wanted := keysOf(next, nil)
	plans := make(map[string]*plan)
	for i := range calls {
		s := &calls[i]
		if s.Address == "" {
			continue
		}
		at := slices.IndexFunc(instances, func(in registry.Instance) bool { return in.Address == s.Address })
		if at < 0 {
			rep.Gone++
			continue
		}
		rep.Calls++
		for _, k := range wanted {
			if !slices.Contains(s.Keys, k) && !slices.Contains(rep.Unknown, k) {
				rep.Unknown = append(rep.Unknown, k)
			}
		}
		id, _ := json.Marshal(s.Caller)
		p := plans[string(id)]
		if p == nil {
			p = compile(next, &s.Caller, nil)
			plans[string(id)] = p
		}
		rep.replay(p, s, instances, instances[at].Key(), moves)
	}
	for _, id := range slices.Sorted(maps.Keys(moves)) {
		rep.Moves = append(rep.Moves, *moves[id])
	}
	slices.SortStableFunc(rep.Moves, func(a, b Move) int { return cmp.Compare(b.Calls, a.Calls) })
	slices.Sort(rep.Unknown)
	return rep
}

// replay adds the effect on one call to the report.
func (rep *Report) replay(p *plan, s *Sample, instances []registry.Instance, from string, moves map[string]*Move) {
	m := p.method(s.Method)
	for _, f := range m.faults {
		if matchAll(f.When.Metadata, s.Metadata) && time.Now().Before(f.Until) {
			rep.Faulted++
			break
		}
	}
	for _, o := range m.mocks {
		if matchAll(o.When.Metadata, s.Metadata) && !o.Failing {
			rep.Mocked++
			return
		}
	}
	draw := mix(balance.Hash(s.Method) + uint64(s.Time.UnixNano()))
	left := p.left(s.Method, s.Metadata, &draw, instances)
	if slices.Contains(left, from) {
		return
	}
	if len(left) == 0 {
		rep.Failed++
	} else {
		rep.Moved++
	}
	id := s.Method + "\x00" + from + "\x00" + strings.Join(left, "\x00")
	if moves[id] == nil {
		moves[id] = &Move{Method: s.Method, From: from, To: left}
	}
	moves[id].Calls++
}

// left returns the keys of the instances that the rules allow for a call.
func (p *plan) left(method string, md map[string]string, draw *uint64, instances []registry.Instance) (keys []string) {
	var list []registry.Instance
	for _, in := range instances {
		if p.adjust != nil {
			in = p.adjust(in)
		}
		if in.State == registry.Up {
			list = append(list, in)
		}
	}
	if s := p.route(method, md, draw); s != nil {
		for _, f := range s.Filters {
			kept := slices.DeleteFunc(slices.Clone(list), func(in registry.Instance) bool { return !f.Keep(&in) })
			if len(kept) > 0 || f.Strict {
				list = kept
			}
		}
	}
	for i := range list {
		keys = append(keys, list[i].Key())
	}
	slices.Sort(keys)
	return keys
}

// effects lists the instances that the rules select. A caller's own values match any instance.
func (r *RuleSet) effects(instances []registry.Instance) []RuleEffect {
	list := []RuleEffect{} // not null in JSON
	add := func(name string, s Select) {
		for _, p := range []*Patterns{&s.Group, &s.Version, &s.Zone} {
			if slices.ContainsFunc(*p, func(t string) bool { return strings.HasPrefix(t, "$") }) {
				*p = nil
			}
		}
		e := RuleEffect{Rule: name, Instances: []string{}}
		for i := range instances {
			if s.matches(&instances[i]) {
				e.Instances = append(e.Instances, instances[i].Key())
			}
		}
		list = append(list, e)
	}
	for i := range r.Groups {
		add(ruleName("groups", i, r.Groups[i].Name), Select{Group: r.Groups[i].Group, Version: r.Groups[i].Version})
	}
	for i := range r.Conditions {
		add(ruleName("conditions", i, r.Conditions[i].Name), r.Conditions[i].To)
	}
	for i := range r.Split {
		add(ruleName("split", i, r.Split[i].Name), r.Split[i].To)
	}
	for i := range r.Instances {
		add(ruleName("instances", i, r.Instances[i].Name), r.Instances[i].Match)
	}
	return list
}
