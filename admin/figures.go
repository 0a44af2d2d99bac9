package admin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/printable"
	"github.com/anser-rpc/anser/internal/redact"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/telemetry"
)

// The parts of a document that [Document.Changed] names.
const (
	PartServers  = "servers"  // servers, with Methods and Announcements
	PartClients  = "clients"  // clients, with what they say about instances and rules
	PartFailures = "failures" // the latest failed calls
	PartSlow     = "slow"     // the latest slow calls
)

// maxRecorded is the number of recorded calls of each kind for readers that poll.
const maxRecorded = 32

// follower makes documents for readers that poll. It keeps the parts as they were last, and the
// turn in which each changed, so any number of readers get what is new for them.
type follower struct {
	mu      sync.Mutex // guards the fields below, and is held while a document is made
	turn    uint64
	now     Document // the present, without methods
	methods map[methodKey]*followedMethod
	order   []*followedMethod
	changed map[string]uint64 // turns, by part
}

type followedMethod struct {
	Method
	calls, turn uint64
}

// serveFigures answers with what has changed since the state that the request names.
func (p *Page) serveFigures(w http.ResponseWriter, r *http.Request) {
	text, err := json.Marshal(p.figures(r.URL.Query().Get("since")))
	if err != nil {
		http.Error(w, "500 "+err.Error(), http.StatusInternalServerError)
		return
	}
	text = printable.JSON(text)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.Write(text)
}

// figures returns the document for a reader that has the state since, which may be any text.
func (p *Page) figures(since string) *Document {
	f := &p.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.now.Time) >= shareFor {
		f.look(p)
	}
	have := uint64(0)
	if id, turn, ok := strings.Cut(since, "."); ok && id == p.self.ID {
		if n, err := strconv.ParseUint(turn, 10, 64); err == nil && n <= f.turn {
			have = n
		}
	}
	doc := f.now
	doc.State = p.self.ID + "." + strconv.FormatUint(f.turn, 10)
	if have > 0 {
		doc.Since = since
	}
	for _, m := range f.order {
		if m.turn > have {
			doc.Methods = append(doc.Methods, m.Method)
		}
	}
	for _, part := range [...]string{PartServers, PartClients, PartFailures, PartSlow} {
		if f.changed[part] > have {
			doc.Changed = append(doc.Changed, part)
			continue
		}
		switch part {
		case PartServers:
			doc.Servers = slices.Clone(doc.Servers)
			for i := range doc.Servers {
				doc.Servers[i].Methods, doc.Servers[i].Announcements = nil, nil
			}
		case PartClients:
			doc.Clients = nil
		case PartFailures:
			doc.Failures = nil
		case PartSlow:
			doc.Slow = nil
		}
	}
	return &doc
}

// look begins a turn: it looks at everything and notes what has changed.
func (f *follower) look(p *Page) {
	if f.changed == nil {
		f.changed, f.methods = make(map[string]uint64), make(map[methodKey]*followedMethod)
	}
	f.turn++
	note := func(part string, same bool) {
		if !same || f.turn == 1 {
			f.changed[part] = f.turn
		}
	}
	now, before := p.samples.look()
	doc := Document{Format: Format, Time: now.Time, Process: p.process(now, before)}
	services := make(map[string]string)
	for _, c := range p.meter.Clients() {
		st := c.Status()
		services[st.Target] = st.Service
		doc.Clients = append(doc.Clients, briefClient(&st))
	}
	for _, s := range p.meter.Servers() {
		for _, a := range s.Announcements() {
			doc.Process.Services = append(doc.Process.Services, a.Instance.Service)
		}
		doc.Servers = append(doc.Servers, briefServer(s))
	}
	slices.Sort(doc.Process.Services)
	doc.Process.Services = slices.Compact(doc.Process.Services)
	slices.SortFunc(doc.Servers, func(a, b Server) int { return slices.Compare(a.Addresses, b.Addresses) })
	slices.SortStableFunc(doc.Clients, func(a, b Client) int { return strings.Compare(a.Target, b.Target) })
	doc.Failures, doc.Slow = latest(p.meter.Failures()), latest(p.meter.SlowCalls())
	note(PartServers, slices.EqualFunc(doc.Servers, f.now.Servers, sameServer))
	note(PartClients, slices.EqualFunc(doc.Clients, f.now.Clients, sameClient))
	note(PartFailures, f.turn > 1 && sameCalls(doc.Failures, f.now.Failures))
	note(PartSlow, f.turn > 1 && sameCalls(doc.Slow, f.now.Slow))
	f.now = doc
	f.count(now, services)
}

// count notes which methods have other counters than before.
func (f *follower) count(now *sample, services map[string]string) {
	for i := range now.Methods {
		m := &now.Methods[i]
		calls, _ := m.Calls()
		key := methodKey{m.Server, m.Target, m.Name}
		k := f.methods[key]
		if k == nil {
			k = new(followedMethod)
			f.methods[key] = k
			f.order = append(f.order, k)
		} else if k.calls == calls && k.Retried == m.Retried && k.Replayed == m.Replayed && k.Service == services[m.Target] {
			continue
		}
		k.Method, k.calls, k.turn = methodOf(m, nil, services[m.Target]), calls, f.turn
		k.Slowest = nil
	}
}

// latest returns the latest calls of a list, without credentials.
func latest(calls []*telemetry.Call, skipped uint64) *Calls {
	out := &Calls{Calls: make([]*telemetry.Call, 0, min(len(calls), maxRecorded)), Skipped: skipped}
	for _, c := range calls[:min(len(calls), maxRecorded)] {
		out.Calls = append(out.Calls, cleanCall(c))
	}
	return out
}

// sameCalls compares two lists of the same record: later calls are at the front, and old ones are
// forgotten.
func sameCalls(a, b *Calls) bool {
	return len(a.Calls) == len(b.Calls) && (len(a.Calls) == 0 || a.Calls[0].Time.Equal(b.Calls[0].Time) && a.Calls[0].Method == b.Calls[0].Method)
}

func briefServer(s *anser.Server) Server {
	st := s.Stats()
	out := Server{Addresses: []string{}, Conns: st.Conns, InFlight: st.InFlight, Waiting: st.Limits.Waiting}
	for _, a := range s.Addrs() {
		out.Addresses = append(out.Addresses, text(a))
	}
	for _, a := range s.Announcements() {
		out.Announcements = append(out.Announcements, Announcement{Instance: briefInstance(&a.Instance), Registered: a.Registered})
	}
	for _, m := range s.MethodStatus() {
		k := servedOf(&m, st.Methods[m.Name])
		out.Methods = append(out.Methods, ServedMethod{
			Name: k.Name, Stream: k.Stream, Oneway: k.Oneway, Idempotent: k.Idempotent, Builtin: k.Builtin, Forwarded: k.Forwarded, Runs: k.Runs,
			MaxInFlight: k.MaxInFlight, Limit: k.Limit, Running: k.Running, Waiting: k.Waiting,
		})
	}
	return out
}

// sameServer compares what [PartServers] has. Aliases are not part of it.
func sameServer(a, b Server) bool {
	return slices.Equal(a.Addresses, b.Addresses) &&
		slices.EqualFunc(a.Methods, b.Methods, func(a, b ServedMethod) bool {
			return a.Name == b.Name && a.Runs == b.Runs && a.Limit == b.Limit && a.Running == b.Running && a.Waiting == b.Waiting && a.MaxInFlight == b.MaxInFlight
		}) &&
		slices.EqualFunc(a.Announcements, b.Announcements, func(a, b Announcement) bool {
			return a.Registered == b.Registered && sameInstance(&a.Instance, &b.Instance)
		})
}

// briefInstance returns what names an instance, without credentials.
func briefInstance(in *registry.Instance) registry.Instance {
	return registry.Instance{Service: in.Service, ID: in.ID, Address: redact.Target(in.Address)}
}

func sameInstance(a, b *registry.Instance) bool {
	return a.Service == b.Service && a.ID == b.ID && a.Address == b.Address
}

func briefClient(st *anser.ClientStatus) Client {
	out := Client{Instances: []Instance{}, Target: st.Target, Service: st.Service, Trouble: redact.URLs(message(st.Trouble))}
	if r := st.Rules; r != nil {
		out.Rules = &Rules{Version: r.Version, Trouble: redact.URLs(message(r.Trouble)), NotFollowed: r.NotFollowed}
	}
	for i := range st.Instances {
		in := instanceOf(&st.Instances[i])
		k := Instance{Instance: briefInstance(&in.Instance), Status: in.Status, Why: redact.URLs(in.Why)}
		for _, b := range in.Breakers {
			if b.State == anser.StateOpen {
				k.Breakers = append(k.Breakers, Breaker{Method: b.Method, State: b.State})
			}
		}
		out.Instances = append(out.Instances, k)
	}
	return out
}

func sameClient(a, b Client) bool {
	return a.Target == b.Target && a.Service == b.Service && a.Trouble == b.Trouble && sameRules(a.Rules, b.Rules) &&
		slices.EqualFunc(a.Instances, b.Instances, func(a, b Instance) bool {
			return sameInstance(&a.Instance, &b.Instance) && a.Status == b.Status && a.Why == b.Why &&
				slices.EqualFunc(a.Breakers, b.Breakers, func(a, b Breaker) bool { return a.Method == b.Method })
		})
}

func sameRules(a, b *Rules) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Version == b.Version && a.Trouble == b.Trouble && a.NotFollowed == b.NotFollowed
}
