package route

import (
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// Unused is a rule that has no effect, which is usually a mistake.
type Unused struct {
	Rule string `json:"rule"` // such as "split[0] canary"
	Why  string `json:"why"`
}

// Unused returns the rules that have no effect on a service with these instances and methods: they
// select no instance, match no method, or have ended. With nil methods, methods are not checked.
func (r *RuleSet) Unused(instances []registry.Instance, methods []string) (list []Unused) {
	for _, e := range r.effects(instances) {
		if len(e.Instances) == 0 {
			list = append(list, Unused{e.Rule, "it matches no instance"})
		}
	}
	for i := range r.Tags {
		tag := r.Tags[i].Tag
		if !slices.ContainsFunc(instances, func(in registry.Instance) bool { return in.Tags[tag] != "" }) {
			list = append(list, Unused{ruleName("tags", i, r.Tags[i].Name), "no instance has the tag " + tag})
		}
	}
	if methods != nil {
		r.eachMatch(func(rule string, m *Match) {
			if len(m.Methods) > 0 && !slices.ContainsFunc(methods, m.Methods.match) {
				list = append(list, Unused{rule, "it matches no method: " + strings.Join(m.Methods, ", ")})
			}
		})
	}
	for i := range r.Faults {
		if f := &r.Faults[i]; !time.Now().Before(f.Until) {
			list = append(list, Unused{ruleName("faults", i, f.Name), "it ended at " + f.Until.UTC().Format(time.RFC3339)})
		}
	}
	return list
}

// Interfering returns the names of the rules that answer calls in place of the servers, or make
// them slow or fail, now.
func (r *RuleSet) Interfering() (names []string) {
	for i := range r.Mocks {
		if !r.Mocks[i].Failing {
			names = append(names, ruleName("mocks", i, r.Mocks[i].Name))
		}
	}
	for i := range r.Faults {
		if time.Now().Before(r.Faults[i].Until) {
			names = append(names, ruleName("faults", i, r.Faults[i].Name))
		}
	}
	return names
}

// eachMatch calls f for the conditions of all rules that match calls.
func (r *RuleSet) eachMatch(f func(rule string, m *Match)) {
	for i := range r.Conditions {
		f(ruleName("conditions", i, r.Conditions[i].Name), &r.Conditions[i].When)
	}
	for i := range r.Split {
		f(ruleName("split", i, r.Split[i].Name), &r.Split[i].When)
	}
	for i := range r.Methods {
		f(ruleName("methods", i, r.Methods[i].Name), &r.Methods[i].When)
	}
	for i := range r.Mocks {
		f(ruleName("mocks", i, r.Mocks[i].Name), &r.Mocks[i].When)
	}
	for i := range r.Faults {
		f(ruleName("faults", i, r.Faults[i].Name), &r.Faults[i].When)
	}
}
