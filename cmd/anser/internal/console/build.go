package console

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

const (
	maxEdges    = 10_000
	maxExternal = 500
	maxFailed   = 100 // processes that are named
	// ofProcess begins the name of a caller that is an instance of no service.
	ofProcess = "process:"
)

// snapshot is what a round says about the system. It is not changed after it was built.
type snapshot struct {
	round    *collect.Round
	system   model.System // without changes
	services map[string]*serviceView
	edges    map[edgeKey]*edgeView
	breakers map[breakerKey]bool // open ones
	answers  *answers            // to requests, made once
}

type edgeKey struct{ from, to string }

type edgeView struct {
	calls collect.Calls
	fresh bool
}

// serviceView is a service.
type serviceView struct {
	model.Service
	state     *collect.ServiceState // nil if it is external
	calls     collect.Calls
	fresh     bool // the figures of a process are known
	instances []*instanceView
	byID      map[string]*instanceView
	methods   map[string]*methodView
	trouble   string // of the clients with the rules
	contracts map[string]int

	order atomic.Pointer[[]int] // places in instances, by their names; nil until it is needed
}

type instanceView struct {
	model.Instance
	calls   collect.Calls
	fresh   bool
	process *collect.Process
	methods map[string]*collect.Calls
	said    struct{ by, why string } // the client whose word its health is, if that is bad
}

type methodView struct {
	calls   collect.Calls
	served  []collect.Served
	read    time.Time // of the round
	refused time.Time // when limits last refused calls; zero: they do not
}

// build makes a snapshot of a round.
func build(r *collect.Round) *snapshot {
	s := &snapshot{
		round: r, services: make(map[string]*serviceView), edges: make(map[edgeKey]*edgeView), breakers: make(map[breakerKey]bool), answers: newAnswers(),
	}
	s.system = model.System{Time: r.Time.UTC(), Interval: r.Interval, Period: r.Period, Registries: []model.Registry{}, Services: []model.Service{}, Edges: []model.Edge{}, Changes: []model.Change{}}
	s.system.Processes.Failed = []model.Failed{}
	for i := range r.Sources {
		o := &r.Sources[i]
		s.system.Registries = append(s.system.Registries, model.Registry{
			Name: o.Name, Kind: o.Kind, Healthy: o.Trouble == "", Trouble: o.Trouble, Since: o.Since.UTC(), Latency: o.Latency,
		})
	}
	for i := range r.Services {
		s.addService(&r.Services[i])
	}
	for _, p := range r.Processes {
		s.addProcess(p)
	}
	s.addHealth()
	s.finish()
	return s
}

func (s *snapshot) addService(o *collect.ServiceState) {
	v := &serviceView{state: o, byID: make(map[string]*instanceView), methods: make(map[string]*methodView), contracts: make(map[string]int)}
	v.Name, v.Registry, v.Rules, v.Stale = o.Name, o.Source, o.Rules.Version, o.Stale.UTC()
	zones, versions := make(map[string]bool), make(map[string]bool)
	for i := range o.Instances {
		in := &o.Instances[i]
		view := &instanceView{Instance: adjusted(in, o.Rules.Rules), methods: make(map[string]*collect.Calls)}
		v.instances = append(v.instances, view)
		v.byID[view.ID] = view
		if in.Zone != "" {
			zones[in.Zone] = true
		}
		if in.Version != "" {
			versions[in.Version] = true
		}
		if f := fingerprint(in); f != "" {
			v.contracts[f]++
		}
	}
	v.Zones, v.Versions, v.Fingerprints = sorted(zones), sorted(versions), slices.Sorted(maps.Keys(v.contracts))
	if v.Fingerprints == nil {
		v.Fingerprints = []string{}
	}
	s.services[o.Name] = v
}

func sorted(set map[string]bool) []string {
	list := slices.AppendSeq([]string{}, maps.Keys(set))
	slices.Sort(list)
	return list
}

func instanceOf(in *registry.Instance) model.Instance {
	out := model.Instance{
		Service: in.Service, ID: model.Text(in.Key()), Address: model.Text(in.Address), Zone: model.Text(in.Zone), Version: model.Text(in.Version),
		Group: model.Text(in.Group), Weight: in.EffectiveWeight(), State: in.State.String(), Health: model.Unknown,
		Admin: model.Text(in.Tags[admin.Tag]),
	}
	for name, value := range in.Tags {
		if name == admin.Tag || strings.HasPrefix(name, anser.ContractTag) {
			continue
		}
		if out.Tags == nil {
			out.Tags = make(map[string]string)
		}
		out.Tags[model.Text(name)] = model.Text(value)
	}
	return out
}

// adjusted returns an instance as the rules change it for its callers.
func adjusted(in *registry.Instance, rules *route.RuleSet) model.Instance {
	if rules == nil {
		return instanceOf(in)
	}
	to := rules.Adjust(*in)
	out := instanceOf(&to)
	if to.State != in.State {
		out.ByRule, out.Announced = append(out.ByRule, "state"), in.State.String()
	}
	if to.EffectiveWeight() != in.EffectiveWeight() {
		out.ByRule = append(out.ByRule, "weight")
	}
	if !maps.Equal(to.Tags, in.Tags) {
		out.ByRule = append(out.ByRule, "tags")
	}
	return out
}

// fingerprint returns one fingerprint of all contracts of an instance, or "" if it tells none.
func fingerprint(in *registry.Instance) string {
	prints := target.Fingerprints(in)
	if len(prints) == 0 {
		return ""
	}
	return digest(prints)
}

// addProcess adds what a process serves and calls.
func (s *snapshot) addProcess(p *collect.Process) {
	n := &s.system.Processes
	n.Known++
	fresh := p.Error == "" && !p.Read.IsZero()
	if fresh {
		n.Read++
	} else if len(n.Failed) < maxFailed {
		n.Failed = append(n.Failed, model.Failed{Address: model.Text(p.Address), Error: cmp.Or(p.Error, "it has not been read yet")})
	}
	var owned []*instanceView
	for _, place := range p.Found {
		if in := s.instance(place.Service, place.Instance); in != nil {
			in.take(p, fresh)
			owned = append(owned, in)
		}
	}
	if !fresh {
		return
	}
	mine := s.servicesOf(p)
	for i := range p.Methods {
		m := &p.Methods[i]
		if m.Builtin {
			continue
		}
		if m.Side == "server" {
			s.addServed(p, m, mine, owned)
		} else if !p.Double {
			s.addCalled(p, m, mine)
		}
	}
}

// servicesOf returns the services that a process may speak for: those in whose instances its page
// was found, or the ones that it announces if it was found in none.
func (s *snapshot) servicesOf(p *collect.Process) (list []string) {
	for _, place := range p.Found {
		list = append(list, place.Service)
	}
	if len(p.Found) == 0 {
		list = slices.DeleteFunc(slices.Clone(p.Services), func(name string) bool { return s.services[name] == nil })
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (s *snapshot) instance(service, key string) *instanceView {
	if v := s.services[service]; v != nil {
		return v.byID[model.Text(key)]
	}
	return nil
}

// take takes what the process of an instance says about itself.
func (in *instanceView) take(p *collect.Process, fresh bool) {
	in.process, in.fresh = p, fresh
	in.CPU, in.Memory, in.Goroutines, in.Conns = p.CPU, p.Memory, p.Goroutines, p.Conns
	in.InFlight, in.Waiting, in.Process, in.Started = p.InFlight, p.Waiting, p.Name, p.Started.UTC()
	if !fresh {
		in.Stale = p.Read.UTC()
		if p.Read.IsZero() {
			in.Stale = time.Unix(0, 0).UTC() // never
		}
		in.Why = p.Error
	}
}

// addServed adds a method that the servers of a process run.
func (s *snapshot) addServed(p *collect.Process, m *collect.Method, mine []string, owned []*instanceView) {
	for _, name := range mine {
		if len(mine) > 1 && len(m.Of) > 0 && !slices.Contains(m.Of, name) {
			continue // a method of another server of the process
		}
		v := s.services[name]
		if v == nil {
			continue
		}
		for _, in := range owned {
			if in.Service == name {
				in.calls.Add(&m.Calls)
				in.methods[m.Name] = &m.Calls
			}
		}
		if p.Double {
			continue
		}
		v.fresh = v.fresh || p.Window > 0
		v.calls.Add(&m.Calls)
		of := v.methods[m.Name]
		if of == nil {
			of = &methodView{read: s.round.Time}
			v.methods[m.Name] = of
		}
		of.calls.Add(&m.Calls)
		of.served = append(of.served, m.Served...)
	}
}

// addCalled adds a method that the clients of a process call.
func (s *snapshot) addCalled(p *collect.Process, m *collect.Method, mine []string) {
	key := edgeKey{ofProcess + p.Name, cmp.Or(m.Service, m.Target)}
	if len(mine) > 0 {
		key.from = mine[0]
	}
	e := s.edges[key]
	if e == nil {
		if len(s.edges) >= maxEdges {
			return
		}
		e = new(edgeView)
		s.edges[key] = e
	}
	e.fresh = e.fresh || p.Window > 0
	e.calls.Add(&m.Calls)
}

// finish computes the figures that are shown.
func (s *snapshot) finish() {
	external := 0
	for _, key := range slices.SortedFunc(maps.Keys(s.edges), compareEdges) {
		e := s.edges[key]
		s.system.Edges = append(s.system.Edges, model.Edge{From: key.from, To: key.to, Figures: figures(&e.calls), Retried: e.calls.Retried})
		v := s.services[key.to]
		if v == nil && external < maxExternal {
			external++
			v = &serviceView{methods: make(map[string]*methodView), contracts: make(map[string]int)}
			v.Name, v.External, v.Zones, v.Versions, v.Fingerprints = key.to, true, []string{}, []string{}, []string{}
			s.services[key.to] = v
		}
		if v != nil && v.External {
			v.fresh = v.fresh || e.fresh
			v.calls.Add(&e.calls)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.services)) {
		v := s.services[name]
		v.Figures = figures(&v.calls)
		v.Instances = len(v.instances)
		for _, in := range v.instances {
			in.Figures = figures(&in.calls)
			v.InFlight += in.InFlight
			v.count(in)
		}
		s.system.Services = append(s.system.Services, v.Service)
	}
}

// count counts an instance by its state.
func (v *serviceView) count(in *instanceView) {
	switch {
	case in.State != registry.Up.String():
		v.Drained++
	case in.Health == model.Ejected:
		v.Ejected++
	case in.Health == model.Down:
		v.Down++
	default:
		v.Up++
	}
}

func compareEdges(a, b edgeKey) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
}

// figures returns the figures of calls, rounded to what a viewer can see.
func figures(c *collect.Calls) model.Figures {
	f := c.Figures()
	f.Rate, f.Failed = round(f.Rate), round(f.Failed)
	return f
}

func round(x float64) float64 { return float64(int64(x*1000+0.5)) / 1000 }
