package collect

import (
	"maps"
	"slices"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/telemetry"
)

type methodKey struct{ side, target, name string }

// counters are what grows of a method.
type counters struct {
	service                            string // of a client
	times                              telemetry.Histogram
	codes                              map[anser.Code]uint64
	failed, retried, refused, replayed uint64
	queue, decode, handle, encode      time.Duration
}

// Method describes the calls of a method in the window of its process.
type Method struct {
	Side    string // "server" or "client"
	Target  string // of a client
	Service string // of a client, "" for fixed instances
	Name    string
	Builtin bool
	Served  []Served // how the servers run it
	Of      []string // services of which it is a method, on the side "server"

	Calls // of the window
}

// Served is how a server runs a method.
type Served struct {
	Stream, Oneway, Idempotent bool
	Inline                     bool
	Limit, Running, Waiting    int64
	MaxInFlight                int
}

// Calls are the calls of some time. The zero value has none.
type Calls struct {
	Window   time.Duration // the longest one of what was added
	Times    telemetry.Histogram
	Codes    map[anser.Code]float64 // per second
	Rate     float64                // per second, as the next ones
	Failed   float64
	Retried  float64
	Refused  float64
	Replayed float64

	Queue, Decode, Handle, Encode time.Duration // sums
}

// Add adds calls of another process or method.
func (c *Calls) Add(o *Calls) {
	c.Window = max(c.Window, o.Window)
	if o.Times.Count == 0 && o.Retried == 0 && o.Refused == 0 && o.Replayed == 0 {
		return // most methods of most processes
	}
	c.Times.Add(&o.Times)
	c.Rate, c.Failed = c.Rate+o.Rate, c.Failed+o.Failed
	c.Retried, c.Refused, c.Replayed = c.Retried+o.Retried, c.Refused+o.Refused, c.Replayed+o.Replayed
	c.Queue, c.Decode, c.Handle, c.Encode = c.Queue+o.Queue, c.Decode+o.Decode, c.Handle+o.Handle, c.Encode+o.Encode
	if c.Codes == nil && len(o.Codes) > 0 {
		c.Codes = make(map[anser.Code]float64)
	}
	for code, r := range o.Codes {
		c.Codes[code] += r
	}
}

// Figures returns the figures of the calls.
func (c *Calls) Figures() model.Figures {
	return model.Figures{Rate: c.Rate, Failed: c.Failed, P50: c.Times.Quantile(0.5), P90: c.Times.Quantile(0.9), P99: c.Times.Quantile(0.99)}
}

// totalsOf returns the counters of a document. last has those of methods that it leaves out, and
// may be nil.
func totalsOf(d *admin.Document, now time.Time, last *totals) *totals {
	t := &totals{id: d.Process.ID, said: d.Time, got: now, cpu: d.Process.CPU}
	if last == nil {
		t.methods = make(map[methodKey]*counters, min(len(d.Methods), maxMethods))
	} else {
		t.methods = maps.Clone(last.methods)
	}
	seen := make(map[methodKey]bool, min(len(d.Methods), maxMethods))
	for i := range d.Methods {
		m := &d.Methods[i]
		key := methodKey{model.Text(m.Side), model.Text(m.Target), model.Text(m.Name)}
		if seen[key] {
			continue // twice
		}
		if len(t.methods) == maxMethods && t.methods[key] == nil {
			break
		}
		seen[key] = true
		t.methods[key] = countersOf(m)
	}
	return t
}

func countersOf(m *admin.Method) *counters {
	c := &counters{
		service: model.Text(m.Service), codes: make(map[anser.Code]uint64, len(m.Codes)), retried: m.Retried, refused: m.Refused, replayed: m.Replayed,
		queue: m.Queue, decode: m.Decode, handle: m.Handle, encode: m.Encode,
	}
	for j := range m.Codes {
		s := &m.Codes[j]
		h := telemetry.Histogram{Count: s.Times.Count, Sum: s.Times.Sum, First: s.Times.First, Counts: s.Times.Counts}
		c.times.Add(&h)
		c.codes[s.Code] += s.Times.Count
		if s.Code != anser.OK {
			c.failed += s.Times.Count
		}
	}
	return c
}

// less returns what was added since before, which may be nil, or 0 if the counter has fallen.
func less[N uint64 | time.Duration](now, before N) N { return now - min(now, before) }

// calls returns the calls between two readings.
func (c *counters) calls(before *counters, window time.Duration) (out Calls) {
	if before == nil {
		before = &counters{}
	}
	out.Window, out.Times = window, c.times
	out.Times.Sub(&before.times)
	if perSecond(out.Times.Count, window) > maxPace {
		return Calls{Window: window}
	}
	out.Rate, out.Failed = perSecond(out.Times.Count, window), perSecond(less(c.failed, before.failed), window)
	out.Retried, out.Refused = perSecond(less(c.retried, before.retried), window), perSecond(less(c.refused, before.refused), window)
	out.Replayed = perSecond(less(c.replayed, before.replayed), window)
	out.Queue, out.Decode = less(c.queue, before.queue), less(c.decode, before.decode)
	out.Handle, out.Encode = less(c.handle, before.handle), less(c.encode, before.encode)
	for code, n := range c.codes {
		if n = less(n, before.codes[code]); n > 0 {
			if out.Codes == nil {
				out.Codes = make(map[anser.Code]float64)
			}
			out.Codes[code] = perSecond(n, window)
		}
	}
	return out
}

// servedMethods says how the servers of a process run methods, by name.
type servedMethods map[string]*servedMethod

type servedMethod struct {
	builtin bool
	list    []Served
	of      []string // services
}

// methods returns the methods of a process, with their calls if there is a window.
func (served servedMethods) methods(now, before *totals, window time.Duration) []Method {
	list := make([]Method, 0, max(len(now.methods), len(served)))
	for key, c := range now.methods {
		m := Method{Side: key.side, Target: key.target, Name: key.name, Calls: Calls{Window: window}}
		if window > 0 && before.methods[key] != c {
			m.Calls = c.calls(before.methods[key], window)
		}
		if key.side != "server" {
			m.Service = c.service
		} else if s := served[key.name]; s != nil {
			m.Builtin, m.Served, m.Of = s.builtin, s.list, s.of
		}
		list = append(list, m)
	}
	for name, s := range served { // not called yet
		if now.methods[methodKey{side: "server", name: name}] == nil {
			list = append(list, Method{Side: "server", Name: name, Builtin: s.builtin, Served: s.list, Of: s.of, Calls: Calls{Window: window}})
		}
	}
	return list
}

func servedOf(d *admin.Document) servedMethods {
	served, of := make(servedMethods), make(map[string]map[string]bool)
	for i := range d.Servers[:min(len(d.Servers), maxClients)] {
		s := &d.Servers[i]
		for j := range s.Methods {
			m := &s.Methods[j]
			name := model.Text(m.Name)
			if served[name] == nil {
				if len(served) == maxMethods {
					break
				}
				served[name], of[name] = &servedMethod{builtin: m.Builtin}, make(map[string]bool)
			}
			served[name].list = append(served[name].list, Served{
				Stream: m.Stream, Oneway: m.Oneway, Idempotent: m.Idempotent, Inline: m.Runs == "inline",
				Limit: max(m.Limit, 0), Running: max(m.Running, 0), Waiting: max(m.Waiting, 0), MaxInFlight: max(m.MaxInFlight, 0),
			})
			for _, a := range s.Announcements[:min(len(s.Announcements), maxClients)] {
				of[name][model.Text(a.Instance.Service)] = true
			}
		}
	}
	for name, set := range of {
		served[name].of = slices.Sorted(maps.Keys(set))
	}
	return served
}
