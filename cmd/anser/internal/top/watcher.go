// Package top shows what the processes of a system do now, from their admin pages.
package top

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
)

// Source is where a process shows its admin page.
type Source struct {
	Address  string // of the page
	Service  string // "" if the process was not found in a registry
	Instance string
}

// Look is what the processes did between two looks.
type Look struct {
	Time      time.Time     `json:"time"`
	Window    time.Duration `json:"window"` // 0 for the first look, which has no rates
	Processes []Process     `json:"processes"`
	Methods   []Method      `json:"methods"` // of all processes together
}

// Process is one process.
type Process struct {
	Address    string   `json:"address"` // of its admin page
	Name       string   `json:"name"`
	ID         string   `json:"id,omitempty"`
	Services   []string `json:"services,omitempty"`
	Error      string   `json:"error,omitempty"` // why it is not known what it does
	Figures             // of the calls that it serves, or makes if it serves none
	CPU        float64  `json:"cpu"`    // processors
	Memory     uint64   `json:"memory"` // bytes
	Goroutines int      `json:"goroutines"`
	Conns      int      `json:"conns"`
	InFlight   int64    `json:"in_flight"`
	Waiting    int64    `json:"waiting"`

	Methods  []Method          `json:"methods,omitempty"`
	Slow     []*telemetry.Call `json:"slow,omitempty"`
	Failures []*telemetry.Call `json:"failures,omitempty"`
}

// Figures are those of calls.
type Figures struct {
	Rate   float64       `json:"rate"`   // per second
	Failed float64       `json:"failed"` // of these
	P50    time.Duration `json:"p50"`
	P99    time.Duration `json:"p99"`
	Queue  time.Duration `json:"queue"` // on average, of calls that servers run

	times  telemetry.Histogram
	failed uint64
	queued time.Duration
	seen   time.Duration // window of a process
}

// Method is what happened to a method.
type Method struct {
	Side   string `json:"side"`
	Name   string `json:"name"`
	Target string `json:"target,omitempty"` // of a client
	Figures
}

// Watcher looks at processes. It is used by one goroutine at a time.
type Watcher struct {
	// Find returns the processes.
	Find   func(ctx context.Context) ([]Source, error)
	Reader *admin.Reader
	// Timeout is how long a process may take to answer.
	Timeout time.Duration

	before map[string]*admin.Document // by address
	looked time.Time
}

// atOnce is the number of processes that are asked at the same time.
const atOnce = 32

// Look asks all processes. A process that does not answer is in the result with its error.
func (w *Watcher) Look(ctx context.Context) (*Look, error) {
	sources, err := w.Find(ctx)
	if err != nil {
		return nil, err
	}
	type result struct {
		doc *admin.Document
		err error
	}
	results := make([]result, len(sources))
	var wg sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i := range sources {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			limited, cancel := context.WithTimeout(ctx, w.Timeout)
			defer cancel()
			results[i].doc, results[i].err = w.Reader.Document(limited, sources[i].Address, "all?conns=0")
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	out := &Look{Time: time.Now(), Processes: []Process{}}
	if !w.looked.IsZero() {
		out.Window = out.Time.Sub(w.looked)
	}
	w.looked = out.Time
	now := make(map[string]*admin.Document)
	for i, r := range results {
		if r.err != nil {
			out.Processes = append(out.Processes, Process{Address: sources[i].Address, Name: cmp.Or(sources[i].Instance, sources[i].Address), Error: r.err.Error()})
			continue
		}
		now[sources[i].Address] = r.doc
		before := w.before[sources[i].Address]
		if before != nil && before.Process.ID != r.doc.Process.ID {
			before = nil // another process at the same address
		}
		out.Processes = append(out.Processes, processOf(sources[i], r.doc, before))
	}
	w.before = now
	out.Methods = merge(out.Processes)
	return out, nil
}

// Trace asks all processes for the calls of a trace. Unlike the other methods it may run at the
// same time as they do.
func (w *Watcher) Trace(ctx context.Context, id string) (*Trace, error) {
	sources, err := w.Find(ctx)
	if err != nil {
		return nil, err
	}
	return ReadTrace(ctx, w.Reader, sources, w.Timeout, id)
}

type methodKey struct{ side, target, name string }

// processOf returns what a process did between two documents.
func processOf(s Source, d, before *admin.Document) Process {
	p := Process{
		Address: s.Address, Name: cmp.Or(s.Instance, d.Process.Name), ID: d.Process.ID, Services: d.Process.Services,
		Memory: d.Process.Memory, Goroutines: d.Process.Goroutines,
	}
	if d.Slow != nil {
		p.Slow = d.Slow.Calls
	}
	if d.Failures != nil {
		p.Failures = d.Failures.Calls
	}
	for i := range d.Servers {
		v := &d.Servers[i]
		p.Conns, p.InFlight, p.Waiting = p.Conns+v.Conns, p.InFlight+v.InFlight, p.Waiting+v.Waiting
	}
	if before == nil {
		return p
	}
	window := d.Time.Sub(before.Time)
	if window <= 0 {
		return p
	}
	p.CPU = float64(d.Process.CPU-before.Process.CPU) / float64(window)
	old := make(map[methodKey]*admin.Method)
	for i := range before.Methods {
		m := &before.Methods[i]
		old[methodKey{m.Side, m.Target, m.Name}] = m
	}
	served := false
	for i := range d.Methods {
		m := &d.Methods[i]
		was := old[methodKey{m.Side, m.Target, m.Name}]
		f := Figures{seen: window, queued: m.Queue}
		f.times, f.failed = m.Difference(was)
		if was != nil {
			f.queued -= was.Queue
		}
		f.measure()
		p.Methods = append(p.Methods, Method{Side: m.Side, Name: m.Name, Target: m.Target, Figures: f})
		served = served || m.Side == "server"
	}
	for i := range p.Methods {
		if m := &p.Methods[i]; !served || m.Side == "server" {
			p.add(&m.Figures)
		}
	}
	return p
}

// measure computes the figures that are shown.
func (f *Figures) measure() {
	if f.seen <= 0 {
		return
	}
	f.Rate, f.Failed = float64(f.times.Count)/f.seen.Seconds(), float64(f.failed)/f.seen.Seconds()
	f.P50, f.P99 = f.times.Quantile(0.5), f.times.Quantile(0.99)
	if f.times.Count > 0 {
		f.Queue = f.queued / time.Duration(f.times.Count)
	}
}

// add adds the calls of another method, or of the same one in another process.
func (f *Figures) add(o *Figures) {
	rate, failed := f.Rate+o.Rate, f.Failed+o.Failed
	f.times.Add(&o.times)
	f.failed += o.failed
	f.queued += o.queued
	f.seen = max(f.seen, o.seen)
	f.measure()
	f.Rate, f.Failed = rate, failed // windows of processes differ a little
}

// merge adds up the methods of all processes.
func merge(processes []Process) []Method {
	list := []Method{} // not null in JSON
	at := make(map[methodKey]int)
	for i := range processes {
		for j := range processes[i].Methods {
			m := &processes[i].Methods[j]
			key := methodKey{m.Side, m.Target, m.Name}
			k, ok := at[key]
			if !ok {
				k = len(list)
				at[key] = k
				list = append(list, Method{Side: m.Side, Name: m.Name, Target: m.Target})
			}
			list[k].add(&m.Figures)
		}
	}
	return list
}

// Orders are the orders of rows.
var Orders = [...]string{"rate", "failed", "p99", "queue", "name"}

// compare compares two rows, the larger first but for names.
func compare(order string, a, b *Figures, nameA, nameB string) int {
	by := 0
	switch order {
	case "rate":
		by = cmp.Compare(b.Rate, a.Rate)
	case "failed":
		by = cmp.Compare(b.Failed, a.Failed)
	case "p99":
		by = cmp.Compare(b.P99, a.P99)
	case "queue":
		by = cmp.Compare(b.Queue, a.Queue)
	}
	return cmp.Or(by, strings.Compare(nameA, nameB))
}

// sortedMethods returns the methods whose names contain the filter.
func sortedMethods(list []Method, order, filter string) []Method {
	list = slices.DeleteFunc(slices.Clone(list), func(m Method) bool {
		return !contains(m.Name, filter) && !contains(m.Target, filter) && !contains(m.Side, filter)
	})
	slices.SortStableFunc(list, func(a, b Method) int {
		return compare(order, &a.Figures, &b.Figures, a.Name+" "+a.Side, b.Name+" "+b.Side)
	})
	return list
}

// sortedProcesses returns the processes whose names, services or addresses contain the filter.
func sortedProcesses(list []Process, order, filter string) []Process {
	list = slices.DeleteFunc(slices.Clone(list), func(p Process) bool {
		return !contains(p.Name, filter) && !contains(p.Address, filter) && !contains(strings.Join(p.Services, " "), filter)
	})
	slices.SortStableFunc(list, func(a, b Process) int { return compare(order, &a.Figures, &b.Figures, a.Name, b.Name) })
	return list
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
