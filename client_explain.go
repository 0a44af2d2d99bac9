package anser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/cluster"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/registry"
)

// Explanation describes where a call would go now, and why it would not go to the other instances.
type Explanation struct {
	Target  string `json:"target"`
	Method  string `json:"method"`
	Version uint64 `json:"rules_version,omitempty"` // of the rules in force
	Trouble string `json:"rules_trouble,omitempty"` // why newer ones could not be read
	// RulesNotFollowed reports that the registry has rules that the client does not follow: see
	// [RulesStatus].
	RulesNotFollowed bool `json:"rules_not_followed,omitempty"`
	// Route is the name of the router's choice; "" for all instances.
	Route string `json:"route,omitempty"`
	// Policies are other effects of the router on the call, in words.
	Policies  []string            `json:"policies,omitempty"`
	Filters   []ExplainedFilter   `json:"filters,omitempty"`
	Instances []ExplainedInstance `json:"instances"` // sorted by key
	Balancer  string              `json:"balancer"`
	// Pick is the key of the instance that the balancer chose; "" for none.
	Pick   string         `json:"pick,omitempty"`
	Reason balance.Reason `json:"reason,omitzero"` // why the balancer chose it
	Error  string         `json:"error,omitempty"`
}

type explainer interface {
	Explain(ctx context.Context, method string, md Metadata) []string
}

// ExplainedFilter is one filter of the router.
type ExplainedFilter struct {
	Name string `json:"name"`
	Left int    `json:"left"` // number of reachable instances that remain
	// PassedOver reports that the filter was skipped, as it would have left none and is not strict.
	PassedOver bool `json:"passed_over,omitempty"`
}

// ExplainedInstance is one instance, with the reason if it cannot be picked.
type ExplainedInstance struct {
	Key     string `json:"key"`
	Address string `json:"address"`
	Weight  int    `json:"weight"`
	// Latency is the average of recent calls of the client, 0 if there are none, and Active the
	// number of its attempts in flight: the balancer p2c compares instances by them.
	Latency time.Duration `json:"latency,omitempty"` // nanoseconds
	Active  int64         `json:"active,omitempty"`

	Cause    Exclusion `json:"cause,omitempty"`    // "" if it can be picked
	Excluded string    `json:"excluded,omitempty"` // the same in words, with details
	Since    time.Time `json:"since,omitzero"`     // start of an ejection or of an open breaker
	Until    time.Time `json:"until,omitzero"`     // when a call probes the instance; zero if unknown
	Note     string    `json:"note,omitempty"`     // further information
}

// Exclusion is the kind of reason for which a call cannot go to an instance. If there are several,
// it is the first one in this order.
type Exclusion string

// The kinds of reasons.
const (
	ExcludedInvalid Exclusion = "invalid"  // its record in the registry is not valid
	ExcludedByRules Exclusion = "rules"    // the rules say that it is draining or disabled
	ExcludedByState Exclusion = "state"    // its own record says so
	ExcludedFilter  Exclusion = "filter"   // excluded by one of [Explanation.Filters]
	ExcludedDown    Exclusion = "down"     // unreachable at the last attempt
	ExcludedEjected Exclusion = "ejected"  // see [OutlierDetection]
	ExcludedBreaker Exclusion = "breaker"  // see [Breaker]
	ExcludedSubset  Exclusion = "subset"   // see [Subset]
	ExcludedChange  Exclusion = "changing" // the instances changed meanwhile: call Explain again
)

// Explain returns the instance to which a call of the method made with ctx would go, and why. It
// makes no call, but asks the balancer like a call: with a balancer that uses instances in turn,
// the next call gets the next turn. A router that has a method Explain(ctx, method, md) []string is
// asked what else it does to the call. Explain waits for the first list of instances until ctx is
// done. Balancers that use a key need the option [HashKey]; other options do not matter.
func (c *Client) Explain(ctx context.Context, method string, opts ...CallOption) (*Explanation, error) {
	if err := c.usable(ctx, method); err != nil {
		return nil, err
	}
	v, fault := c.awaitView(ctx)
	if fault != nil {
		return nil, fault
	}
	x := &Explanation{Target: c.target, Method: method, Balancer: c.o.balancer.Name()}
	if st := c.Status().Rules; st != nil {
		x.Version, x.RulesNotFollowed = st.Version, st.NotFollowed
		if st.Trouble != nil {
			x.Trouble = st.Trouble.Error()
		}
	}
	filtered := make(map[string]string)
	m, err := c.method(method)
	if err == nil {
		v = v.ForCall(&m.health, nil)
	}
	part := v
	var picked *Route
	if c.router != nil {
		md := outgoing(ctx)
		s, fault := c.route(ctx, method, md)
		if fault != nil {
			return nil, fault
		}
		if r, ok := c.router.(explainer); ok {
			x.Policies = r.Explain(ctx, method, md)
		}
		if picked = s; s != nil {
			x.Route = s.Name
			x.filter(v, s.inCluster(), filtered)
			part = v.ForRoute(s)
		}
	}
	r := balance.Request{Method: method, Key: c.o.call.with(opts).hashKey}
	if e := part.PickApart(&r); e != nil { // probes are for calls, as their results are waited for
		x.Pick, x.Reason = e.Instance().Key(), r.Reason
	} else {
		x.Error = c.noInstance(picked).Message
	}
	x.Instances = c.explainInstances(part, m, filtered)
	return x, nil
}

// filter records the effect of each filter of a route, and the instances that it excludes.
func (x *Explanation) filter(v *view, filters []cluster.Filter, filtered map[string]string) {
	for i := range filters {
		_, before := v.Filter(filters[:i], nil)
		var last ExplainedFilter
		_, after := v.Filter(filters[:i+1], func(f *cluster.Filter, left int, passedOver bool) {
			last = ExplainedFilter{Name: f.Name, Left: left, PassedOver: passedOver}
		})
		x.Filters = append(x.Filters, last)
		for _, e := range before {
			if !slices.Contains(after, e) {
				filtered[e.Instance().Key()] = last.Name
			}
		}
	}
}

// explainInstances lists all instances that are in the registry or held. m is the method of the
// call, which may be nil; filtered has the names of the filters that exclude instances, by key.
func (c *Client) explainInstances(part *view, m *clientMethod, filtered map[string]string) []ExplainedInstance {
	st, now := c.cluster.Status(), mono.Now()
	adjusted := c.cluster.Adjusted(st.Listed)
	known := make(map[string]bool, len(st.Instances))
	for i := range st.Instances {
		known[st.Instances[i].Instance.Key()] = true
	}
	list := make([]ExplainedInstance, 0, len(st.Listed))
	weights := make(map[string]int, len(st.Listed))
	for i, in := range adjusted {
		weights[in.Key()] = st.Listed[i].EffectiveWeight()
		if !known[in.Key()] {
			list = append(list, explainUnused(&in, st.Listed[i].State))
		}
	}
	for i := range st.Instances {
		e := &st.Instances[i]
		key := e.Instance.Key()
		x := ExplainedInstance{Key: key, Address: e.Instance.Address, Weight: e.Instance.EffectiveWeight(), Latency: e.Endpoint.Latency(), Active: e.Endpoint.Active()}
		why := unfitFor(e, m, now)
		var notes []string
		if e.Held {
			notes = append(notes, "held: the registry no longer lists it, but removed too many at once")
		}
		if w, ok := weights[key]; ok && w != x.Weight {
			notes = append(notes, "the rules set its weight")
		}
		if w := e.Endpoint.Warmth(); w < 100 {
			notes = append(notes, fmt.Sprintf("it is new or has come back, and has %d %% of its weight for now", w))
		}
		switch ok := part.Has(e.Endpoint); {
		case ok && why.cause != "":
			notes = append(notes, why.words+"; it gets calls all the same, as no better one is left")
		case ok:
		case filtered[key] != "":
			x.Cause, x.Excluded = ExcludedFilter, filtered[key]
		case why.cause != "":
			x.Cause, x.Excluded, x.Since, x.Until = why.cause, why.words, why.since, why.until
		case st.Partial && part.Usable < part.Total:
			x.Cause = ExcludedSubset
			x.Excluded = fmt.Sprintf("not among the %d of %d that this client uses", part.Usable, part.Total)
		default:
			x.Cause, x.Excluded = ExcludedChange, "it has just come or gone: ask again"
		}
		x.Note = strings.Join(notes, "; ")
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b ExplainedInstance) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// explainUnused explains a listed instance that the client does not use at all. listed is its state
// before the rules changed it.
func explainUnused(in *registry.Instance, listed registry.State) ExplainedInstance {
	x := ExplainedInstance{Key: in.Key(), Address: in.Address, Weight: in.EffectiveWeight()}
	switch {
	case in.Validate() != nil:
		x.Cause, x.Excluded = ExcludedInvalid, in.Validate().Error()
	case in.State != listed:
		x.Cause, x.Excluded = ExcludedByRules, "the rules say that it is "+in.State.String()
	default:
		x.Cause, x.Excluded = ExcludedByState, "it says that it is "+in.State.String()
	}
	return x
}

// unfit says why an endpoint should get no calls of a method.
type unfit struct {
	cause        Exclusion // "" if it should
	words        string
	since, until time.Time
}

// unfitFor returns the gravest reason found by the client itself, from the state that the views
// were built with.
func unfitFor(e *cluster.InstanceStatus[*host, *Route], m *clientMethod, now mono.Time) unfit {
	if e.Down {
		return unfit{cause: ExcludedDown, words: "down: it could not be reached when last tried"}
	}
	if e.Standing != cluster.InUse {
		u := unfit{cause: ExcludedEjected, words: "ejected", since: clockTime(e.Since, now)}
		if e.Ejections > 1 {
			u.words += fmt.Sprintf(" (%d times in a row)", e.Ejections)
		}
		u.words += " " + span(now.Sub(e.Since)) + " ago, as " + e.Why
		switch {
		case e.Standing == cluster.OnTrial:
			u.words += ": single calls try it now"
		case e.Silent:
			u.words += ": it is back when it does"
		default:
			u.until = clockTime(e.Until, now)
			u.words += ": a call tries it in " + span(e.Until.Sub(now))
		}
		return u
	}
	for i := range e.Breakers {
		if b := &e.Breakers[i]; m != nil && b.Method == m.name && b.State != cluster.Closed {
			return unfitByBreaker(b, now)
		}
	}
	return unfit{}
}

func unfitByBreaker(b *cluster.BreakerStatus, now mono.Time) unfit {
	state := breakerStates[b.State]
	u := unfit{cause: ExcludedBreaker, since: clockTime(b.Since, now)}
	u.words = "the breaker of " + b.Method + " has been " + state.String() + " for " + span(now.Sub(b.Since)) + ", as " + b.Why
	if state == StateHalfOpen {
		u.words += ": single calls try it now"
	} else {
		u.until = clockTime(b.Until, now)
		u.words += ": a call tries it in " + span(b.Until.Sub(now))
	}
	return u
}

// clockTime returns the time of day of a time.
func clockTime(at, now mono.Time) time.Time { return time.Now().Add(at.Sub(now)) }

// span formats a duration for people.
func span(d time.Duration) string {
	return max(d, 0).Round(100 * time.Millisecond).String()
}
