package route

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
)

// Limits per kind of rule, so that the matching rules of a call fit into a few words.
const (
	maxTags       = 4
	maxConditions = 128
	maxSplits     = 64
	maxRules      = 1000 // of any other kind
	maxDelay      = time.Minute
)

// Validate returns an error with the paths of invalid rules, or nil. Faults that have expired are
// valid.
func (r *RuleSet) Validate() error {
	p := new(problems)
	count := func(path string, n, most int) {
		if n > most {
			p.add(path, "has %d rules: at most %d", n, most)
		}
	}
	count("rules.groups", len(r.Groups), maxRules)
	count("rules.tags", len(r.Tags), maxTags)
	count("rules.conditions", len(r.Conditions), maxConditions)
	count("rules.split", len(r.Split), maxSplits)
	count("rules.instances", len(r.Instances), maxRules)
	count("rules.methods", len(r.Methods), maxRules)
	count("rules.mocks", len(r.Mocks), maxRules)
	count("rules.faults", len(r.Faults), maxRules)
	for i := range r.Groups {
		if g, path := &r.Groups[i], at("groups", i); len(g.Group) == 0 && len(g.Version) == 0 {
			p.add(path, "names neither group nor version: give one")
		}
	}
	for i := range r.Tags {
		path := at("tags", i)
		if r.Tags[i].Tag == "" {
			p.add(path+".tag", "is empty: name a tag of the instances")
		}
		p.key(path+".metadata", r.Tags[i].Metadata)
	}
	for i := range r.Conditions {
		p.match(at("conditions", i)+".when", &r.Conditions[i].When)
		p.selects(at("conditions", i)+".to", &r.Conditions[i].To)
	}
	p.split(r.Split)
	for i := range r.Instances {
		p.instance(at("instances", i), &r.Instances[i])
	}
	for i := range r.Methods {
		p.method(at("methods", i), &r.Methods[i])
	}
	for i := range r.Mocks {
		p.mock(at("mocks", i), &r.Mocks[i])
	}
	for i := range r.Faults {
		p.fault(at("faults", i), &r.Faults[i])
	}
	return errors.Join(p.list...)
}

func at(list string, i int) string { return fmt.Sprintf("rules.%s[%d]", list, i) }

func (p *problems) match(path string, m *Match) {
	for k := range m.Metadata {
		p.key(path+".metadata."+k, k)
	}
}

// key checks the name of a metadata key, which is in lower case on the wire.
func (p *problems) key(path, key string) {
	if key != strings.ToLower(key) {
		p.add(path, "keys of metadata are in lower case: write %q", strings.ToLower(key))
	}
}

func (p *problems) selects(path string, s *Select) {
	if reflect.ValueOf(s).Elem().IsZero() {
		p.add(path, "selects nothing in particular: name at least one of id, address, group, version, zone and tags")
	}
}

func (p *problems) percent(path string, f, least float64) {
	if !(f >= least && f <= 100) || math.Abs(f*100-math.Round(f*100)) > 1e-6 {
		p.add(path, "%v is not a share: use %v to 100, in steps of 0.01", f, least)
	}
}

func (p *problems) split(rules []SplitRule) {
	for i := range rules {
		s, path := &rules[i], at("split", i)
		p.match(path+".when", &s.When)
		p.selects(path+".to", &s.To)
		p.percent(path+".percent", s.Percent, 0)
		p.key(path+".by", s.By)
		sum := 0.0
		for j := range i + 1 {
			if reflect.DeepEqual(rules[j].When, s.When) {
				sum += rules[j].Percent
			}
		}
		if sum > 100+1e-6 {
			p.add(path+".percent", "brings the shares of the same calls to %v: at most 100", sum)
		}
	}
}

func (p *problems) instance(path string, r *InstanceRule) {
	p.selects(path+".match", &r.Match)
	if r.Weight == nil && r.State == "" && len(r.Tags) == 0 {
		p.add(path, "sets neither weight nor state nor tags: give one")
	}
	p.tags(path+".tags", r.Tags)
	if r.Weight != nil && (*r.Weight < 1 || *r.Weight > registry.MaxWeight) {
		p.add(path+".weight", "%d is not a weight: use 1 to %d, and the state disabled for no calls at all", *r.Weight, registry.MaxWeight)
	}
	if r.State != "" {
		if new(registry.State).UnmarshalText([]byte(r.State)) != nil {
			p.add(path+".state", "%q is not a state: use up, draining or disabled", r.State)
		}
	}
}

// tags checks tags as instances have them.
func (p *problems) tags(path string, tags map[string]string) {
	in := registry.Instance{Service: "service", Address: "host:1", Tags: tags}
	if in.Validate() != nil {
		p.add(path, "a tag has a name without control characters, both are UTF-8, and all together have at most %d bytes", registry.MaxTagBytes)
	}
}

func (p *problems) method(path string, r *MethodRule) {
	p.match(path+".when", &r.When)
	if r.Timeout == 0 && r.Attempts == 0 && r.Mode == "" && r.Rate == nil && r.Concurrency == 0 {
		p.add(path, "sets nothing: give timeout, attempts, mode, rate or concurrency")
	}
	if r.Timeout < 0 {
		p.add(path+".timeout", "%v is negative", time.Duration(r.Timeout))
	}
	if r.Attempts < 0 || r.Attempts > 5 {
		p.add(path+".attempts", "%d: use 1 to 5", r.Attempts)
	}
	if r.Concurrency < 0 {
		p.add(path+".concurrency", "%d is negative", r.Concurrency)
	}
	if _, ok := modes()[r.Mode]; r.Mode != "" && !ok {
		p.add(path+".mode", "%q is not a fail mode%s", r.Mode, suggest(r.Mode, modeNames()))
	}
	if q := r.Rate; q != nil && (!(q.PerSecond > 0 && q.PerSecond <= 1e9) || q.Burst < 0) {
		p.add(path+".rate", "want per_second above 0 and at most 1e9, and burst of at least 0")
	}
}

func (p *problems) mock(path string, r *MockRule) {
	p.match(path+".when", &r.When)
	if (r.Reply == nil) == (r.Error == nil) {
		p.add(path, "want one of reply and error")
	}
	if r.Reply != nil && !json.Valid(r.Reply) {
		p.add(path+".reply", "is not JSON")
	}
	p.errorSpec(path+".error", r.Error)
}

func (p *problems) fault(path string, r *FaultRule) {
	p.match(path+".when", &r.When)
	p.percent(path+".percent", r.Percent, 0.01)
	if r.Until.IsZero() {
		p.add(path+".until", "is missing: a fault must end by itself")
	}
	if r.Delay < 0 || time.Duration(r.Delay) > maxDelay {
		p.add(path+".delay", "%v: use at most %v", time.Duration(r.Delay), maxDelay)
	}
	if r.Delay == 0 && r.Error == nil && !r.Abort {
		p.add(path, "does nothing: give delay, error or abort")
	}
	if r.Error != nil && r.Abort {
		p.add(path, "want at most one of error and abort")
	}
	p.errorSpec(path+".error", r.Error)
}

func (p *problems) errorSpec(path string, e *ErrorSpec) {
	if e == nil {
		return
	}
	if _, ok := codes()[codeKey(e.Code)]; !ok {
		p.add(path+".code", "%q is not a code%s", e.Code, suggest(e.Code, codeNames()))
	}
}

// codeKey normalizes a code: "not_found", "NOT_FOUND" and "not found" are the same.
func codeKey(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

func codeNames() (names []string) {
	for c := anser.OK + 1; c <= anser.Unauthenticated; c++ {
		names = append(names, c.String())
	}
	return names
}

func codes() map[string]anser.Code {
	m := make(map[string]anser.Code)
	for c := anser.OK + 1; c <= anser.Unauthenticated; c++ {
		m[codeKey(c.String())] = c
	}
	return m
}

// modes returns, by name, the fail modes that a rule can set: they need no support by the program
// and do not change the result of a call.
func modes() map[string]anser.FailMode {
	m := make(map[string]anser.FailMode)
	for _, mode := range []anser.FailMode{anser.Failover, anser.Failfast, anser.Failtry, anser.Backup} {
		m[mode.String()] = mode
	}
	return m
}

func modeNames() []string {
	var names []string
	for name := range modes() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
