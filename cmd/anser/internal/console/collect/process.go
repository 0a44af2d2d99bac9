package collect

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/telemetry"
)

const (
	maxMethods = 500 // of a process that are followed
	maxClients = 200
	maxSeen    = 2000 // instances that a client sees
	maxCalls   = 32   // recorded calls of each kind that are kept for a process
	// maxPace is a number of calls per second that no process makes: a page with more lies.
	maxPace = 1e8
	// maxWindow is the longest time over which counters are subtracted.
	maxWindow = 2 * Rarest
)

// Place is an instance of a service.
type Place struct{ Service, Instance string }

// Process is what is known about a process. Its texts are printable and short.
type Process struct {
	Address string
	Found   []Place // the instances that announce the page
	ID      string  // "" before the first reading
	Name    string
	Double  bool // another page is of the same process, and counts
	// Error is why the last reading failed. What is said below is that of the one before.
	Error   string
	Read    time.Time     // the last reading that succeeded
	Started time.Time     //
	Window  time.Duration // that the figures cover; 0: there are none yet

	CPU        float64 // processors
	Memory     uint64
	Goroutines int
	Conns      int
	InFlight   int64
	Waiting    int64
	Services   []string // that it announces
	Methods    []Method
	Clients    []Client
	Slow       []*telemetry.Call
	Failures   []*telemetry.Call
}

// Client is what a client of a process says.
type Client struct {
	Target, Service string
	Instances       []Seen
	Rules           uint64 // version that it follows
	RulesTrouble    string
	Trouble         string // of its registry
}

// Seen is an instance as a client sees it.
type Seen struct {
	Key, Status, Why string
	Breakers         []string // methods whose breakers are open
}

// process reads one page. Its fields belong to the goroutine of the rounds.
type process struct {
	address  string
	host     string // of the address, with the port
	found    []Place
	since    time.Time // when it was first seen with its ID
	asked    time.Time
	lost     bool      // its host has closed a connection before this round
	detailed bool      // a viewer sees its service in detail
	after    time.Time // it is not asked before
	pause    time.Duration
	view     Process

	state  string // of the page at the last reading, "" if that failed
	before *totals
	served servedMethods
	slot   int // in which turns it is read
}

// totals are the counters of the last reading.
type totals struct {
	id      string
	said    time.Time // by the clock of the process
	got     time.Time
	cpu     time.Duration
	methods map[methodKey]*counters
}

func newProcess(address string, slot int) *process {
	return &process{address: address, host: hostOf(address), slot: slot, since: time.Now(), view: Process{Address: address}}
}

// read reads the page. What it says stays if the reading fails.
func (p *process) read(ctx context.Context, reader *admin.Reader) {
	first := p.asked.IsZero()
	p.asked = time.Now()
	d, err := reader.Figures(ctx, p.address, p.state)
	if err == nil && d.Since != "" && d.Process.ID != p.before.id {
		err = errors.New("the page answers for another process than before")
	}
	switch {
	case err != nil && first && errors.Is(err, context.DeadlineExceeded):
		return // it is asked again at once
	case err != nil:
		p.pause = min(max(2*p.pause, Watched), maxPause)
		p.after = time.Now().Add(p.pause - Watched/2)
		p.state, p.view.Error = "", model.Text(err.Error())
		return
	}
	p.pause, p.after = 0, time.Time{}
	p.take(d, time.Now())
}

// take takes what a document says. What it leaves out is as it was, if it builds on the last one.
func (p *process) take(d *admin.Document, now time.Time) {
	v, whole := p.view, d.Since == ""
	v.Found, v.Error, v.Read, v.Started, v.Memory = p.found, "", now, d.Process.Started, d.Process.Memory
	v.ID, v.Name, v.Goroutines = model.Text(d.Process.ID), model.Text(d.Process.Name), max(d.Process.Goroutines, 0)
	v.Conns, v.InFlight, v.Waiting, v.CPU, v.Window, v.Services = 0, 0, 0, 0, 0, nil
	for _, s := range d.Process.Services[:min(len(d.Process.Services), maxClients)] {
		v.Services = append(v.Services, model.Text(s))
	}
	for i := range d.Servers {
		s := &d.Servers[i]
		v.Conns, v.InFlight, v.Waiting = v.Conns+max(s.Conns, 0), v.InFlight+max(s.InFlight, 0), v.Waiting+max(s.Waiting, 0)
	}
	has := func(part string) bool { return whole || slices.Contains(d.Changed, part) }
	if has(admin.PartServers) {
		p.served = servedOf(d)
	}
	if has(admin.PartClients) {
		v.Clients = clientsOf(d)
	}
	if has(admin.PartSlow) {
		v.Slow = callsOf(d.Slow)
	}
	if has(admin.PartFailures) {
		v.Failures = callsOf(d.Failures)
	}
	var last *totals
	if !whole {
		last = p.before
	}
	totals := totalsOf(d, now, last)
	if before := p.before; before != nil && before.id == totals.id && now.Sub(before.got) < maxWindow && totals.follows(before) {
		v.Window = totals.since(before)
		if cpu := float64(totals.cpu-before.cpu) / float64(v.Window); cpu >= 0 && cpu < 1<<16 {
			v.CPU = cpu
		}
	}
	v.Methods = p.served.methods(totals, p.before, v.Window)
	if p.view.ID != v.ID {
		p.since = now
	}
	p.before, p.view, p.state = totals, v, d.State
}

// follows reports whether no counter has fallen, which happens in one process only if it lies.
func (t *totals) follows(before *totals) bool {
	if t.since(before) <= 0 {
		return false
	}
	for key, m := range t.methods {
		if was := before.methods[key]; was != nil && was != m && (m.times.Count < was.times.Count || m.failed < was.failed) {
			return false
		}
	}
	return true
}

// since returns the time between two readings: by the clock of the process, unless that has jumped.
func (t *totals) since(before *totals) time.Duration {
	said, got := t.said.Sub(before.said), t.got.Sub(before.got)
	if said > got/2 && said < 2*got {
		return said
	}
	return got
}

func clientsOf(d *admin.Document) (list []Client) {
	seen := 0
	for i := range d.Clients[:min(len(d.Clients), maxClients)] {
		c := &d.Clients[i]
		out := Client{Target: model.Text(c.Target), Service: model.Text(c.Service), Trouble: model.Text(c.Trouble)}
		if c.Rules != nil {
			out.Rules, out.RulesTrouble = c.Rules.Version, model.Text(c.Rules.Trouble)
			if c.Rules.NotFollowed {
				out.RulesTrouble = "the client of the process " + model.Text(d.Process.Name) + " does not follow the rules: its program lacks route.Rules"
			}
		}
		for j := range c.Instances {
			if seen++; seen > maxSeen {
				break
			}
			in := &c.Instances[j]
			s := Seen{Key: model.Text(in.Key()), Status: model.Text(in.Status), Why: model.Text(in.Why)}
			for k := range in.Breakers {
				if b := &in.Breakers[k]; b.State.String() == "open" && k < maxCalls {
					s.Breakers = append(s.Breakers, model.Text(b.Method))
				}
			}
			out.Instances = append(out.Instances, s)
		}
		list = append(list, out)
	}
	return list
}

// callsOf returns the latest recorded calls.
func callsOf(of *admin.Calls) (list []*telemetry.Call) {
	if of == nil {
		return nil
	}
	for _, c := range of.Calls[:min(len(of.Calls), maxCalls)] {
		list = append(list, Clean(c))
	}
	return list
}

// Clean returns a call with printable and short texts.
func Clean(c *telemetry.Call) *telemetry.Call {
	out := *c
	for _, s := range []*string{&out.Side, &out.Target, &out.Method, &out.Peer, &out.Identity, &out.Message, &out.TraceID} {
		*s = model.Text(*s)
	}
	out.Attempts = slices.Clone(out.Attempts[:min(len(out.Attempts), maxCalls)])
	for i := range out.Attempts {
		a := &out.Attempts[i]
		a.Address, a.Message = model.Text(a.Address), model.Text(a.Message)
	}
	return &out
}

// perSecond returns a rate, or 0 for what is no number.
func perSecond(n uint64, window time.Duration) float64 {
	r := float64(n) / window.Seconds()
	if math.IsNaN(r) || math.IsInf(r, 0) {
		return 0
	}
	return r
}
