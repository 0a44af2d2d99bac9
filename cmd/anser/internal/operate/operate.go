// Package operate has the changes that an operator makes to the instances and the traffic of a
// service. They are rules with names of their own, so that clients follow them, instances that
// start again keep them, and every change has a version and an author. A function returns changed
// rules, and leaves its argument as it is.
package operate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// Change is what an operator wants of an instance. Nil fields stay as they are.
type Change struct {
	// State is Up to let the instance have calls again, Draining or Disabled.
	State *registry.State `json:"state,omitempty"`
	// Weight is 1 to registry.MaxWeight; 0 restores the instance's own weight.
	Weight *int `json:"weight,omitempty"`
	// Tags are set by name; an empty text removes one.
	Tags map[string]string `json:"tags,omitempty"`
}

// String describes the change: "disabled, weight 10, tag zone=a".
func (c *Change) String() string {
	var parts []string
	if c.State != nil {
		parts = append(parts, c.State.String())
	}
	if c.Weight != nil {
		if *c.Weight == 0 {
			parts = append(parts, "the weight that it announces")
		} else {
			parts = append(parts, fmt.Sprintf("weight %d", *c.Weight))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tags)) {
		if c.Tags[name] == "" {
			parts = append(parts, "without the tag "+name)
		} else {
			parts = append(parts, "tag "+name+"="+c.Tags[name])
		}
	}
	return strings.Join(parts, ", ")
}

// instanceRule returns the name of the rule about an instance.
func instanceRule(key string) string { return "operator: " + key }

// SetInstance changes the rules so that an instance has the state, weight and tags of the change.
// What the instance has without a rule needs none.
func SetInstance(rules route.RuleSet, in registry.Instance, to Change) (route.RuleSet, error) {
	key := in.Key()
	switch {
	case to.State == nil && to.Weight == nil && len(to.Tags) == 0:
		return rules, errors.New("the change has neither a state nor a weight nor tags: give one")
	case strings.Contains(key, "*") || strings.HasPrefix(key, "!"):
		return rules, fmt.Errorf("the key %q has a * or begins with !, which rules take for a pattern: give the instance another id", key)
	case to.Weight != nil && (*to.Weight < 0 || *to.Weight > registry.MaxWeight):
		return rules, fmt.Errorf("%d is no weight: use 1 to %d, or 0 for the instance's own", *to.Weight, registry.MaxWeight)
	}
	name := instanceRule(key)
	rule := route.InstanceRule{Name: name, Match: route.Select{ID: route.Patterns{key}}}
	rules.Instances = slices.DeleteFunc(slices.Clone(rules.Instances), func(r route.InstanceRule) bool {
		if r.Name == name {
			rule = r
		}
		return r.Name == name
	})
	rule.Tags = maps.Clone(rule.Tags)
	without := rules.Adjust(in)
	if to.Weight != nil {
		rule.Weight = nil
		if w := *to.Weight; w != 0 && w != without.EffectiveWeight() {
			rule.Weight = &w
		}
	}
	if to.State != nil {
		if err := setState(&rule, in, without, *to.State); err != nil {
			return rules, err
		}
	}
	setTags(&rule, without, to.Tags)
	if rule.Weight != nil || rule.State != "" || len(rule.Tags) > 0 {
		rules.Instances = append(rules.Instances, rule) // the last one counts
	}
	return rules, rules.Validate()
}

// setState sets the state of an instance that has the state of without if there is no rule.
func setState(rule *route.InstanceRule, in, without registry.Instance, to registry.State) error {
	if to > registry.Disabled {
		return fmt.Errorf("unknown %v: use up, draining or disabled", to)
	}
	if to == registry.Up && in.State == registry.Draining {
		return fmt.Errorf("%s drains by itself, as servers do before they end: calls to it would fail", in.Key())
	}
	rule.State = ""
	if to != without.State {
		rule.State = to.String()
	}
	return nil
}

func setTags(rule *route.InstanceRule, without registry.Instance, tags map[string]string) {
	for name, value := range tags {
		delete(rule.Tags, name)
		if without.Tags[name] == value {
			continue
		}
		if rule.Tags == nil {
			rule.Tags = make(map[string]string)
		}
		rule.Tags[name] = value
	}
}

const (
	canaryName  = "canary"
	faultPrefix = "operator: "
	// MaxFault is the longest time that a fault of an operator may last.
	MaxFault = 24 * time.Hour
)

// SetCanary changes the rules so that a share of the calls, in percent, goes to some instances
// until a time. There is one canary of a service.
func SetCanary(rules route.RuleSet, to route.Select, percent float64, until time.Time) (route.RuleSet, error) {
	rule := route.SplitRule{Name: canaryName, Percent: percent, To: to, Until: until}
	rules.Split = slices.Clone(rules.Split)
	if i := canaryOf(&rules); i >= 0 {
		rules.Split[i] = rule
	} else {
		rules.Split = append(rules.Split, rule)
	}
	return rules, rules.Validate()
}

// Canary returns the rule of the canary, if there is one.
func Canary(rules *route.RuleSet) (route.SplitRule, bool) {
	if i := canaryOf(rules); i >= 0 {
		return rules.Split[i], true
	}
	return route.SplitRule{}, false
}

func canaryOf(rules *route.RuleSet) int {
	return slices.IndexFunc(rules.Split, func(s route.SplitRule) bool { return s.Name == canaryName })
}

// AddFault adds a fault with a name to the rules, in place of one with the same name. Faults of
// operators that are over are removed.
func AddFault(rules route.RuleSet, name string, f route.FaultRule) (route.RuleSet, error) {
	now := time.Now()
	switch {
	case !f.Until.After(now):
		return rules, fmt.Errorf("until: %s is in the past: use a later time", f.Until.Format(time.RFC3339))
	case f.Until.Sub(now) > MaxFault:
		return rules, fmt.Errorf("until: %s is too late: a fault lasts at most %v", f.Until.Format(time.RFC3339), MaxFault)
	}
	f.Name = faultPrefix + name
	rules.Faults = slices.DeleteFunc(slices.Clone(rules.Faults), func(o route.FaultRule) bool {
		return o.Name == f.Name || strings.HasPrefix(o.Name, faultPrefix) && !o.Until.After(now)
	})
	rules.Faults = append(rules.Faults, f)
	return rules, rules.Validate()
}

// RemoveFault removes a fault that AddFault has added, and reports whether there was one.
func RemoveFault(rules route.RuleSet, name string) (route.RuleSet, bool) {
	n := len(rules.Faults)
	rules.Faults = slices.DeleteFunc(slices.Clone(rules.Faults), func(o route.FaultRule) bool { return o.Name == faultPrefix+name })
	return rules, len(rules.Faults) < n
}

// Fault is a fault that AddFault has added.
type Fault struct {
	Name string
	route.FaultRule
}

// Faults returns the faults that AddFault has added and that are not over.
func Faults(rules *route.RuleSet) (list []Fault) {
	for _, f := range rules.Faults {
		if name, ok := strings.CutPrefix(f.Name, faultPrefix); ok && f.Until.After(time.Now()) {
			list = append(list, Fault{name, f})
		}
	}
	return list
}
