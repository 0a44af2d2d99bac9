package anser

import (
	"context"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/balance"
)

// Explanation says where a call would go now, and why not elsewhere.
type Explanation struct {
	Target    string              `json:"target"`
	Method    string              `json:"method"`
	Version   uint64              `json:"rules_version,omitempty"` // of the rules in force
	Trouble   string              `json:"rules_trouble,omitempty"` // why newer ones could not be read
	Subset    string              `json:"subset,omitempty"`        // what the router made of the call; "" for all instances
	Policies  []string            `json:"policies,omitempty"`      // what else the router does to the call, in words
	Filters   []ExplainedFilter   `json:"filters,omitempty"`
	Instances []ExplainedInstance `json:"instances"` // sorted by key
	Balancer  string              `json:"balancer"`
	Pick      string              `json:"pick,omitempty"` // key of the instance that the balancer chose; "" for none
	Error     string              `json:"error,omitempty"`
}

type explainer interface {
	Explain(ctx context.Context, method string, md Metadata) []string
}

// ExplainedFilter is one step of the router's.
type ExplainedFilter struct {
	Name       string `json:"name"`
	Left       int    `json:"left"`                  // how many instances that can be reached stay
	PassedOver bool   `json:"passed_over,omitempty"` // it would have left none, and is not strict
}

// ExplainedInstance is one instance and why it cannot be picked.
type ExplainedInstance struct {
	Key      string `json:"key"`
	Address  string `json:"address"`
	Weight   int    `json:"weight"`
	Excluded string `json:"excluded,omitempty"` // "" for one that can be picked
	Note     string `json:"note,omitempty"`     // what else there is to know
}

// Explain tells to which instance a call of the method made with ctx would go. It makes no call, but asks the
// balancer like one: with those that take turns, the next call gets the next turn. A router that has a method
// Explain(ctx, method, md) []string is asked what else it does to the call. It waits for the first list
// of instances until ctx is done. Balancers that go by a key need the option [HashKey]; other options do not
// matter.
func (c *Client) Explain(ctx context.Context, method string, opts ...CallOption) (*Explanation, error) {
	v, fault := c.cluster.wait(ctx)
	if fault != nil {
		return nil, fault
	}
	x := &Explanation{Target: c.target, Method: method, Balancer: c.o.balancer.Name()}
	if st := c.Status().Rules; st != nil {
		x.Version = st.Version
		if st.Trouble != nil {
			x.Trouble = st.Trouble.Error()
		}
	}
	excluded := make(map[string]string)
	if m, err := c.method(method); err == nil {
		v = v.forCall(m, nil)
	}
	part := v
	var picked *Part
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
			x.Subset = s.Name
			x.filter(v, s, excluded)
			part = v.of(s)
		}
	}
	r := balance.Request{Method: method, Key: c.o.call.with(opts).hashKey}
	untried := *part
	untried.trials = nil // they are for calls, whose ends are waited for
	if e := untried.pick(&r); e != nil {
		x.Pick = e.Instance().Key()
	} else {
		x.Error = c.nobody(picked).Message
	}
	x.Instances = c.cluster.explain(part, excluded)
	return x, nil
}

// filter notes what the filters of the subset do, and to whom.
func (x *Explanation) filter(v *view, s *Part, excluded map[string]string) {
	steps := Part{Filters: make([]Filter, 0, len(s.Filters))}
	for i := range s.Filters {
		steps.Filters = append(steps.Filters, s.Filters[i])
		_, before := v.narrow(&Part{Filters: s.Filters[:i]}, nil)
		var last ExplainedFilter
		_, after := v.narrow(&steps, func(f *Filter, left int, passedOver bool) {
			last = ExplainedFilter{Name: f.Name, Left: left, PassedOver: passedOver}
		})
		x.Filters = append(x.Filters, last)
		for _, e := range before {
			if !slices.Contains(after, e) {
				excluded[e.Instance().Key()] = last.Name
			}
		}
	}
}

// explain lists all instances that the registry does, and those that are held.
func (cl *cluster) explain(part *view, excluded map[string]string) []ExplainedInstance {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	list := make([]ExplainedInstance, 0, len(cl.listed))
	for i, in := range cl.adjustedLocked(cl.listed) {
		if cl.endpoints[in.Key()] != nil {
			continue
		}
		x := ExplainedInstance{Key: in.Key(), Address: in.Address, Weight: in.EffectiveWeight()}
		switch {
		case in.Validate() != nil:
			x.Excluded = in.Validate().Error()
		case in.State != cl.listed[i].State:
			x.Excluded = "the rules say that it is " + in.State.String()
		default:
			x.Excluded = "it says that it is " + in.State.String()
		}
		list = append(list, x)
	}
	for key, e := range cl.endpoints {
		x := ExplainedInstance{Key: key, Address: e.Instance().Address, Weight: e.Instance().EffectiveWeight()}
		if e.gone {
			x.Note = "held: the registry no longer lists it, but took too many away at once"
		}
		for i := range cl.listed {
			if in := &cl.listed[i]; in.Key() == key && in.EffectiveWeight() != x.Weight {
				x.Note = "the rules set its weight"
			}
		}
		down := e.host.down()
		switch _, ok := part.byPick[e.Endpoint]; {
		case ok && down:
			x.Note = "down, as all that are left"
		case ok:
		case excluded[key] != "":
			x.Excluded = excluded[key]
		case down:
			x.Excluded = "down: it could not be reached when last tried"
		default:
			x.Excluded = "the client leaves it out for now"
		}
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b ExplainedInstance) int { return strings.Compare(a.Key, b.Key) })
	return list
}
