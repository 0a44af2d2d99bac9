package route

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// Caller describes a client for the rules.
type Caller struct {
	Service string            `json:"service,omitempty"` // the client's own service
	Group   string            `json:"group,omitempty"`
	Version string            `json:"version,omitempty"`
	Zone    string            `json:"zone,omitempty"`
	Tags    map[string]string `json:"tags,omitempty"`
}

// plan is a set of rules as applied by one client. It is immutable, except for its caches.
type plan struct {
	rules  *RuleSet
	caller *Caller
	group  *anser.Filter // nil means none
	tags   []TagRule
	adjust func(registry.Instance) registry.Instance // nil if no rule changes instances

	methods atomic.Pointer[map[string]*methodPlan] // replaced, never modified
	subsets atomic.Pointer[map[subsetKey]*anser.Route]
	adding  sync.Mutex // held while methods or subsets is replaced

	limits map[string]*limiter // by the rule as JSON, so that a limit is kept when other rules change
}

// methodPlan is the part of the rules that applies to a method.
type methodPlan struct {
	plain      bool // nothing depends on the call: all calls use subset
	subset     *anser.Route
	conditions []numbered[*ConditionRule]
	splits     []numbered[*SplitRule]

	policies []policy
	mocks    []*MockRule
	faults   []*FaultRule
}

type numbered[T any] struct {
	n    int
	rule T
}

type policy struct {
	rule  *MethodRule
	mode  anser.FailMode
	limit *limiter // nil means none
}

// subsetKey identifies the rules that produced a subset: equal keys mean equal subsets.
type subsetKey struct {
	tags       [maxTags]string
	conditions [2]uint64 // bit by number
	splits     uint64    // rules that matched
	chosen     int8      // the rule whose share the call belongs to; -1: the rest
}

// Limits of a plan's caches. Methods come from the program and tag values from its callers, so
// there may be any number of either.
const (
	maxMethods = 4096
	maxSubsets = 1024
)

// compile returns the plan for a caller. before, which may be nil, is the plan that it replaces.
func compile(r *RuleSet, c *Caller, before *plan) *plan {
	p := &plan{rules: r, caller: c, tags: r.Tags, limits: make(map[string]*limiter)}
	p.methods.Store(new(map[string]*methodPlan))
	p.subsets.Store(new(map[subsetKey]*anser.Route))
	for i := range r.Groups {
		g := &r.Groups[i]
		if g.Caller.matches(c) {
			s := (&Select{Group: g.Group, Version: g.Version}).resolved(c)
			p.group = &anser.Filter{Name: ruleName("groups", i, g.Name), Keep: s.matches, Strict: g.Strict}
			break
		}
	}
	for i := range r.Methods {
		m := &r.Methods[i]
		if m.Rate == nil && m.Concurrency == 0 {
			continue
		}
		key, _ := json.Marshal(m)
		id := fmt.Sprintf("%d %s", i, key)
		if before != nil && before.limits[id] != nil {
			p.limits[id] = before.limits[id]
		} else {
			p.limits[id] = newLimiter(ruleName("methods", i, m.Name), m.Rate, m.Concurrency)
		}
	}
	if len(r.Instances) > 0 {
		p.adjust = r.adjuster(c)
	}
	return p
}

// ruleName returns the name of a rule in messages.
func ruleName(list string, i int, name string) string {
	if name == "" {
		return fmt.Sprintf("%s[%d]", list, i)
	}
	return fmt.Sprintf("%s[%d] %s", list, i, name)
}

func (r *RuleSet) adjuster(c *Caller) func(registry.Instance) registry.Instance {
	rules := slices.Clone(r.Instances)
	for i := range rules {
		rules[i].Match = *rules[i].Match.resolved(c)
	}
	return func(in registry.Instance) registry.Instance {
		out := in
		for i := range rules {
			o := &rules[i]
			if !o.Match.matches(&in) {
				continue
			}
			if o.Weight != nil {
				out.Weight = *o.Weight
			}
			if o.State != "" {
				_ = out.State.UnmarshalText([]byte(o.State)) // validated
			}
			out.Tags = o.tagged(out.Tags)
		}
		return out
	}
}

// tagged returns the tags after the rule's changes.
func (r *InstanceRule) tagged(tags map[string]string) map[string]string {
	if len(r.Tags) == 0 {
		return tags
	}
	tags = maps.Clone(tags)
	if tags == nil {
		tags = make(map[string]string)
	}
	for name, value := range r.Tags {
		if value == "" {
			delete(tags, name)
		} else {
			tags[name] = value
		}
	}
	return tags
}

// matches reports whether the rule applies to the client.
func (m *CallerMatch) matches(c *Caller) bool {
	return m == nil || m.Service.match(c.Service) && m.Group.match(c.Group) && m.Version.match(c.Version) &&
		m.Zone.match(c.Zone) && matchAll(m.Tags, c.Tags)
}

func matchAll(patterns map[string]Patterns, texts map[string]string) bool {
	for k, p := range patterns {
		if !p.match(texts[k]) {
			return false
		}
	}
	return true
}

// matches reports whether the instance is selected.
func (s *Select) matches(in *registry.Instance) bool {
	return s.ID.match(in.Key()) && s.Address.match(in.Address) && s.Group.match(in.Group) &&
		s.Version.match(in.Version) && s.Zone.match(in.Zone) && matchAll(s.Tags, in.Tags)
}

// resolved replaces the placeholders of the caller's own values.
func (s *Select) resolved(c *Caller) *Select {
	out := *s
	out.Group, out.Version, out.Zone = s.Group.resolved(c), s.Version.resolved(c), s.Zone.resolved(c)
	return &out
}

// method returns the part of the plan that applies to the method.
func (p *plan) method(name string) *methodPlan {
	if m := (*p.methods.Load())[name]; m != nil {
		return m
	}
	p.adding.Lock()
	defer p.adding.Unlock()
	old := *p.methods.Load()
	if m := old[name]; m != nil {
		return m
	}
	m := p.planLocked(name)
	next := make(map[string]*methodPlan, len(old)+1)
	if len(old) < maxMethods {
		for k, v := range old {
			next[k] = v
		}
	}
	next[name] = m
	p.methods.Store(&next)
	return m
}

func (p *plan) planLocked(name string) *methodPlan {
	m, r := new(methodPlan), p.rules
	wanted := func(w *Match) bool { return w.Methods.match(name) && w.Caller.matches(p.caller) }
	always := len(p.tags) == 0
	for i := range r.Conditions {
		if c := &r.Conditions[i]; wanted(&c.When) {
			m.conditions = append(m.conditions, numbered[*ConditionRule]{i, c})
			always = always && len(c.When.Metadata) == 0
		}
	}
	for i := range r.Split {
		if s := &r.Split[i]; wanted(&s.When) {
			m.splits = append(m.splits, numbered[*SplitRule]{i, s})
			always = false
		}
	}
	for i := range r.Methods {
		if o := &r.Methods[i]; wanted(&o.When) {
			key, _ := json.Marshal(o)
			m.policies = append(m.policies, policy{o, modes()[o.Mode], p.limits[fmt.Sprintf("%d %s", i, key)]})
		}
	}
	for i := range r.Mocks {
		if o := &r.Mocks[i]; wanted(&o.When) {
			m.mocks = append(m.mocks, o)
		}
	}
	for i := range r.Faults {
		if o := &r.Faults[i]; wanted(&o.When) {
			m.faults = append(m.faults, o)
		}
	}
	if always {
		m.plain = true
		key := subsetKey{chosen: -1}
		for _, c := range m.conditions {
			key.conditions[c.n/64] |= 1 << (c.n % 64)
		}
		m.subset = p.rememberLocked(key) // shared with calls of other methods that match the same rules
	}
	return m
}

func (m *methodPlan) intercepts() bool {
	return len(m.policies)+len(m.mocks)+len(m.faults) > 0
}

// route returns the subset for a call, nil for all instances. draw is a random number, or nil to
// draw one when it is needed.
func (p *plan) route(method string, md map[string]string, draw *uint64) *anser.Route {
	m := p.method(method)
	if m.plain {
		return m.subset
	}
	key := subsetKey{chosen: -1}
	for i := range p.tags {
		t := &p.tags[i]
		if t.Metadata != "" {
			key.tags[i] = md[t.Metadata]
		}
		if key.tags[i] == "" {
			key.tags[i] = p.caller.Tags[t.Tag]
		}
	}
	for _, c := range m.conditions {
		if matchAll(c.rule.When.Metadata, md) {
			key.conditions[c.n/64] |= 1 << (c.n % 64)
		}
	}
	if len(m.splits) > 0 {
		m.split(&key, md, draw)
	}
	if s, ok := (*p.subsets.Load())[key]; ok {
		return s
	}
	return p.remember(key)
}

// split finds the share that the call belongs to. Shares are consecutive intervals of the range
// from 0 to 10,000, and each value of "by" has a fixed position in it: a value in a share stays in
// it when the share grows.
func (m *methodPlan) split(key *subsetKey, md map[string]string, draw *uint64) {
	random, drawn := uint64(0), false
	end := 0.0
	for _, s := range m.splits {
		if !matchAll(s.rule.When.Metadata, md) {
			continue
		}
		key.splits |= 1 << s.n
		if !s.rule.open() {
			continue // its instances get nothing: they do not belong to the rest
		}
		end += s.rule.Percent * 100
		if key.chosen >= 0 {
			continue
		}
		var place uint64
		if value := md[s.rule.By]; s.rule.By != "" && value != "" {
			place = mix(balance.Hash(value) ^ 0x5bd1e9955bd1e995)
		} else {
			if !drawn {
				drawn = true
				if draw != nil {
					random = *draw
				} else {
					random = rand.Uint64()
				}
			}
			place = random
		}
		if float64(place%10_000) < end-1e-6 {
			key.chosen = int8(s.n)
		}
	}
}

// mix is the finalizer of splitmix64: it makes positions independent of the positions of the same
// values in a consistent hash.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// remember creates the subset of the key, unless another call has just done so.
func (p *plan) remember(key subsetKey) *anser.Route {
	p.adding.Lock()
	defer p.adding.Unlock()
	return p.rememberLocked(key)
}

func (p *plan) rememberLocked(key subsetKey) *anser.Route {
	old := *p.subsets.Load()
	if s, ok := old[key]; ok {
		return s
	}
	for i := range key.tags {
		key.tags[i] = strings.Clone(key.tags[i]) // a copy, which does not keep all of the call's metadata alive
	}
	next := make(map[subsetKey]*anser.Route, len(old)+1)
	if len(old) < maxSubsets {
		for k, v := range old {
			next[k] = v
		}
	}
	next[key] = p.subset(key)
	p.subsets.Store(&next)
	return next[key]
}

// subset creates the subset of the key; nil means all instances.
func (p *plan) subset(key subsetKey) *anser.Route {
	s := new(anser.Route)
	if p.group != nil {
		s.Filters = append(s.Filters, *p.group)
	}
	for i := range p.tags {
		s.Filters = append(s.Filters, p.tags[i].filters(i, key.tags[i])...)
	}
	for i := range p.rules.Conditions {
		if c := &p.rules.Conditions[i]; key.conditions[i/64]&(1<<(i%64)) != 0 {
			s.Filters = append(s.Filters, anser.Filter{
				Name: ruleName("conditions", i, c.Name), Keep: c.To.resolved(p.caller).matches, Strict: c.Strict,
			})
		}
	}
	if key.splits != 0 {
		s.Filters = append(s.Filters, p.share(key))
	}
	if len(s.Filters) == 0 {
		return nil
	}
	names := make([]string, len(s.Filters))
	for i := range s.Filters {
		names[i] = s.Filters[i].Name
	}
	s.Name = strings.Join(names, ", ")
	return s
}

// filters returns the filters of the rule for a call with the value.
func (t *TagRule) filters(i int, value string) []anser.Filter {
	name, tag := ruleName("tags", i, t.Name), t.Tag
	without := anser.Filter{
		Name: fmt.Sprintf("%s: without %s", name, tag),
		Keep: func(in *registry.Instance) bool { return in.Tags[tag] == "" },
	}
	if value == "" {
		return []anser.Filter{without}
	}
	with := anser.Filter{
		Name: fmt.Sprintf("%s: %s=%s", name, tag, value), Strict: t.Strict,
		Keep: func(in *registry.Instance) bool { return in.Tags[tag] == value },
	}
	if t.Strict {
		return []anser.Filter{with}
	}
	// If with is skipped, the instances without the tag remain; if it is not, no instance passes
	// both.
	return []anser.Filter{with, without}
}

// share returns the filter of the chosen share, or of the rest.
func (p *plan) share(key subsetKey) anser.Filter {
	if key.chosen >= 0 {
		s := &p.rules.Split[key.chosen]
		return anser.Filter{
			Name: fmt.Sprintf("%s: %v%%", ruleName("split", int(key.chosen), s.Name), s.Percent),
			Keep: s.To.resolved(p.caller).matches, Strict: s.Strict,
		}
	}
	var shares []*Select
	for i := range p.rules.Split {
		if key.splits&(1<<i) != 0 {
			shares = append(shares, p.rules.Split[i].To.resolved(p.caller))
		}
	}
	return anser.Filter{Name: "split: the rest", Keep: func(in *registry.Instance) bool {
		return !slices.ContainsFunc(shares, func(s *Select) bool { return s.matches(in) })
	}}
}

// explain describes the other effects of the rules on a call.
func (p *plan) explain(method string, md map[string]string, now time.Time) (lines []string) {
	m := p.method(method)
	for _, o := range m.policies {
		if !matchAll(o.rule.When.Metadata, md) {
			continue
		}
		data, _ := json.Marshal(MethodRule{
			Name: o.rule.Name, Timeout: o.rule.Timeout, Attempts: o.rule.Attempts, Mode: o.rule.Mode,
			Rate: o.rule.Rate, Concurrency: o.rule.Concurrency,
		})
		lines = append(lines, "method "+string(data))
		break
	}
	for _, o := range m.faults {
		if matchAll(o.When.Metadata, md) && now.Before(o.Until) {
			lines = append(lines, fmt.Sprintf("fault %q for %v %% until %s", o.Name, o.Percent, o.Until.Format(time.RFC3339)))
		}
	}
	for _, o := range m.mocks {
		if !matchAll(o.When.Metadata, md) {
			continue
		}
		if o.Failing {
			lines = append(lines, fmt.Sprintf("degrade %q: a fixed answer when the call fails", o.Name))
			continue
		}
		lines = append(lines, fmt.Sprintf("mock %q: a fixed answer, no instance is called", o.Name))
	}
	return lines
}
