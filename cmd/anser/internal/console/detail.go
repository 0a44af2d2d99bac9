package console

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/telemetry"
)

// service returns a service with its parts, without changes.
func (s *snapshot) service(v *serviceView) *model.ServiceDetail {
	d := &model.ServiceDetail{
		Service: v.Service, Instances: s.instancesOf(v.Name, maxNamed), Tags: v.tags(), Methods: []model.Method{}, Callers: []model.Edge{}, Callees: []model.Edge{},
		Contracts: []model.Contract{}, Changes: []model.Change{}, Rules: model.RulesState{Version: v.Rules, Trouble: v.trouble}, Folders: v.folders(),
	}
	if v.state != nil && v.state.Rules.Trouble != "" {
		d.Rules.Trouble = v.state.Rules.Trouble
	}
	for _, name := range slices.Sorted(maps.Keys(v.methods)) {
		d.Methods = append(d.Methods, v.methods[name].method(name))
	}
	for i := range s.system.Edges {
		e := &s.system.Edges[i]
		if e.To == v.Name {
			d.Callers = append(d.Callers, *e)
		}
		if e.From == v.Name {
			d.Callees = append(d.Callees, *e)
		}
	}
	for _, f := range v.Fingerprints {
		d.Contracts = append(d.Contracts, model.Contract{Fingerprint: f, Instances: v.contracts[f]})
	}
	return d
}

// method returns the figures of a method.
func (m *methodView) method(name string) model.Method {
	c := &m.calls
	out := model.Method{
		Name: name, Figures: figures(c), P999: c.Times.Quantile(0.999), Codes: codeRates(c), Retried: round(c.Retried), Refused: round(c.Refused),
		Replayed: round(c.Replayed),
	}
	if n := time.Duration(min(c.Times.Count, math.MaxInt64)); n > 0 {
		out.Queue, out.Decode, out.Handle, out.Encode = c.Queue/n, c.Decode/n, c.Handle/n, c.Encode/n
	}
	for i := range m.served {
		s := &m.served[i]
		out.Stream, out.Oneway, out.Idempotent = out.Stream || s.Stream, out.Oneway || s.Oneway, out.Idempotent || s.Idempotent
		out.Limit, out.Running, out.Waiting = out.Limit+s.Limit, out.Running+s.Running, out.Waiting+s.Waiting
		out.MaxInFlight = max(out.MaxInFlight, s.MaxInFlight)
		runs := "worker"
		if s.Inline {
			runs = "inline"
		}
		if out.Runs == "" {
			out.Runs = runs
		} else if out.Runs != runs {
			out.Runs = "both"
		}
	}
	return out
}

func codeRates(c *collect.Calls) []model.CodeRate {
	out := []model.CodeRate{}
	for _, code := range slices.Sorted(maps.Keys(c.Codes)) {
		out = append(out, model.CodeRate{Code: code.String(), Rate: round(c.Codes[code])})
	}
	return out
}

// methodDetail returns a method of a service with its parts.
func (s *snapshot) methodDetail(v *serviceView, name string) *model.MethodDetail {
	d := &model.MethodDetail{Method: v.methods[name].method(name), Instances: []model.InstanceFigures{}, Attempts: s.attempts(v.Name, name)}
	for _, in := range v.instances {
		if c := in.methods[name]; c != nil {
			d.Instances = append(d.Instances, model.InstanceFigures{Instance: in.ID, Figures: figures(c), Stale: in.Stale})
		}
	}
	d.Slow = s.calls(callFilter{service: v.Name, method: name, kind: "slow"})
	d.Failures = s.calls(callFilter{service: v.Name, method: name, kind: "failed"})
	return d
}

// attempts returns the rates of calls with one attempt, and with more, by what the callers say.
func (s *snapshot) attempts(service, method string) []model.AttemptRate {
	once, more := 0.0, 0.0
	for _, p := range s.round.Processes {
		if p.Error != "" || p.Double {
			continue
		}
		for i := range p.Methods {
			if m := &p.Methods[i]; m.Side == "client" && m.Name == method && m.Service == service {
				once, more = once+max(m.Rate-m.Retried, 0), more+m.Retried
			}
		}
	}
	return []model.AttemptRate{{Attempts: 1, Rate: round(once)}, {Attempts: 2, Rate: round(more)}}
}

// callFilter selects recorded calls. Empty fields select all.
type callFilter struct {
	service, method string
	kind            string // "failed", "slow", or "" for both
	trace           string
}

// maxListed is the number of recorded calls in an answer.
const maxListed = 200

// calls returns recorded calls, the last one first.
func (s *snapshot) calls(f callFilter) []model.Call {
	out := []model.Call{}
	seen := make(map[callKey]bool)
	for _, p := range s.round.Processes {
		if p.Double {
			continue
		}
		for _, list := range s.recorded(p, f.kind) {
			for _, c := range list {
				if f.method != "" && c.Method != f.method || f.trace != "" && c.TraceID != f.trace {
					continue
				}
				call := s.call(p, c)
				key := callKey{p.Address, c.Side, c.Method, c.TraceID, c.Time, c.Duration}
				if f.service != "" && call.Service != f.service || seen[key] {
					continue
				}
				seen[key] = true
				out = append(out, call)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b model.Call) int { return b.Time.Compare(a.Time) })
	return out[:min(len(out), maxListed)]
}

// callKey tells calls apart: a slow call that failed is in both lists.
type callKey struct {
	process, side, method, trace string
	time                         time.Time
	took                         time.Duration
}

func (s *snapshot) recorded(p *collect.Process, kind string) [][]*telemetry.Call {
	switch kind {
	case "failed":
		return [][]*telemetry.Call{p.Failures}
	case "slow":
		return [][]*telemetry.Call{p.Slow}
	}
	return [][]*telemetry.Call{p.Failures, p.Slow}
}

// call returns a recorded call with the service that was called.
func (s *snapshot) call(p *collect.Process, c *telemetry.Call) model.Call {
	out := model.Call{Process: p.Name, Call: c}
	if c.Side == "client" {
		for i := range p.Clients {
			if p.Clients[i].Target == c.Target {
				out.Service = p.Clients[i].Service
			}
		}
		out.Service = cmp.Or(out.Service, c.Target)
		return out
	}
	for _, place := range p.Found {
		if v := s.services[place.Service]; v != nil && (out.Service == "" || v.methods[c.Method] != nil) {
			out.Service, out.Instance = place.Service, model.Text(place.Instance)
		}
	}
	return out
}

// trace returns the recorded calls with a trace id, in the order in which they began.
func (s *snapshot) trace(id string) []model.Call {
	list := s.calls(callFilter{trace: id})
	began := func(c model.Call) time.Time { return c.Time.Add(-c.Duration) }
	slices.SortStableFunc(list, func(a, b model.Call) int { return began(a).Compare(began(b)) })
	return list
}

// maxFound is the number of results of a search, of each kind.
const maxFound = 20

// search finds services, folders, methods and instances whose names contain a text.
func (s *snapshot) search(text string) []model.Found {
	text = strings.ToLower(text)
	found := map[string][]model.Found{}
	add := func(kind, name, url string) {
		if strings.Contains(strings.ToLower(name), text) && len(found[kind]) < maxFound {
			found[kind] = append(found[kind], model.Found{Kind: kind, Name: name, URL: url})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.services)) {
		v, at := s.services[name], "/services/"+escape(name)
		add("service", name, at)
		for _, folder := range v.folders() {
			add("folder", name+": "+folder, "/files/"+escape(name)+"?name="+escape(folder))
		}
		for _, method := range slices.Sorted(maps.Keys(v.methods)) {
			add("method", method, at+"/methods/"+escape(method))
		}
		for _, in := range v.instances {
			add("instance", in.ID, at+"?tab=instances&instance="+escape(in.ID))
		}
	}
	out := []model.Found{}
	for _, kind := range []string{"service", "folder", "method", "instance"} {
		out = append(out, found[kind]...)
	}
	return out
}
