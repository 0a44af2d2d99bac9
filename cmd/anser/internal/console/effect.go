package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/telemetry"
)

const (
	beforeStep  = 10 * time.Second
	beforeSteps = 6 // that are compared with what follows a change
	effectSpan  = time.Hour
	maxEffects  = 3 // of a service
	maxGroups   = 50
	// maxComparedCallers are the callers whose calls are compared, each once for each service that
	// they call.
	maxComparedCallers = maxEdges
)

// effects compare the calls of services before and after changes of their rules. The methods are
// safe for concurrent use.
type effects struct {
	mu       sync.Mutex // guards the fields below
	began    time.Time  // time of the first round
	services map[string]*serviceEffects
	callers  int // of all services
}

// serviceEffects is what is known about the calls of a service.
type serviceEffects struct {
	recent  map[string]*recent // by the ids of instances
	callers map[string]*recent // the same calls as their callers see them, by the addresses of their pages
	list    []*effect          // the last one last
}

// recent has the calls of an instance in the last minute.
type recent struct {
	member
	slots [beforeSteps + 1]struct {
		step int64
		tally
	}
	last int64 // step
}

// effect is a change of rules.
type effect struct {
	model.RulesChange
	seen    time.Time // of the round, with the monotonic clock
	ended   time.Time
	members map[string]*compared // by the ids of instances
	callers map[string]*compared // by the addresses of their pages
}

// member is what groups an instance.
type member struct {
	version, zone string
	tags          map[string]string
}

type compared struct {
	member
	before, since tally
}

// tally has the calls of some time.
type tally struct {
	times  telemetry.Histogram
	failed float64
	span   time.Duration
	window time.Duration // the longest one of a reading
}

func (t *tally) add(c *collect.Calls, window time.Duration) {
	t.times.Add(&c.Times)
	t.failed += c.Failed * window.Seconds()
	t.span += window
	t.window = max(t.window, window)
}

func (t *tally) merge(o *tally) {
	t.times.Add(&o.times)
	t.failed += o.failed
	t.span += o.span
	t.window = max(t.window, o.window)
}

// add takes a snapshot, and the changes of rules since the one before.
func (e *effects) add(s, before *snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.services == nil {
		e.services, e.began = make(map[string]*serviceEffects), s.round.Time
	}
	step := e.stepLocked(s)
	called := s.called()
	e.callers = 0
	for _, of := range e.services {
		e.callers += len(of.callers)
	}
	for name, v := range s.services {
		of := e.services[name]
		if v.state == nil {
			continue
		}
		if of == nil {
			of = &serviceEffects{recent: make(map[string]*recent), callers: make(map[string]*recent)}
			e.services[name] = of
		}
		// What is read in this round has calls from before and after the change.
		if was := before.services[name]; was != nil && was.state != nil {
			of.changed(s, step, v, was)
		}
		e.takeLocked(of, s, step, v, called[name])
	}
	for name := range e.services {
		if s.services[name] == nil {
			delete(e.services, name)
		}
	}
}

// changed begins a comparison if the rules are others than before.
func (of *serviceEffects) changed(s *snapshot, step int64, v, was *serviceView) {
	r, old := &v.state.Rules, &was.state.Rules
	if !r.Known || !old.Known || r.Version == old.Version || r.Trouble != "" {
		return
	}
	if n := len(of.list); n > 0 && of.list[n-1].ended.IsZero() {
		of.list[n-1].ended = s.round.Time
	}
	next := &effect{seen: s.round.Time, members: make(map[string]*compared), callers: make(map[string]*compared)}
	next.RulesChange = model.RulesChange{Version: r.Version, Former: old.Version, Time: s.system.Time, Author: r.Author, Comment: r.Comment}
	for id, r := range of.recent {
		next.members[id] = &compared{member: r.member, before: r.sum(step)}
	}
	for address, r := range of.callers {
		next.callers[address] = &compared{before: r.sum(step)}
	}
	of.list = append(of.list, next)
	of.list = slices.Delete(of.list, 0, max(len(of.list)-maxEffects, 0))
}

// add adds calls in a step.
func (r *recent) add(step int64, c *collect.Calls, window time.Duration) {
	slot := &r.slots[step%int64(len(r.slots))]
	if slot.step != step {
		slot.step, slot.tally = step, tally{}
	}
	slot.tally.add(c, window)
	r.last = step
}

// sum adds up the last minute before a step.
func (r *recent) sum(step int64) (out tally) {
	for i := range r.slots {
		if slot := &r.slots[i]; slot.span > 0 && slot.step >= step-beforeSteps {
			out.merge(&slot.tally)
		}
	}
	return out
}

// stepLocked is the place of a snapshot in time, by the monotonic clock.
func (e *effects) stepLocked(s *snapshot) int64 { return int64(s.round.Time.Sub(e.began) / beforeStep) }

// readNow reports whether figures were read in this round. Others were in a snapshot before, so
// they must not be added again.
func (s *snapshot) readNow(p *collect.Process) bool {
	return p.Error == "" && p.Window > 0 && !p.Read.Before(s.round.Time)
}

// callerCalls are the calls of a process to a service.
type callerCalls struct {
	process *collect.Process
	calls   collect.Calls
}

// called returns the calls to each service as the callers see them that were read in this round.
func (s *snapshot) called() map[string][]*callerCalls {
	out := make(map[string][]*callerCalls)
	for _, p := range s.round.Processes {
		if p.Double || !s.readNow(p) {
			continue
		}
		for i := range p.Methods {
			m := &p.Methods[i]
			if m.Builtin || m.Side == "server" {
				continue
			}
			name := cmp.Or(m.Service, m.Target)
			list := out[name]
			if len(list) == 0 || list[len(list)-1].process != p {
				list = append(list, &callerCalls{process: p})
				out[name] = list
			}
			list[len(list)-1].calls.Add(&m.Calls)
		}
	}
	return out
}

// takeLocked takes the calls of the instances and of the callers that were read in this round.
func (e *effects) takeLocked(of *serviceEffects, s *snapshot, step int64, v *serviceView, called []*callerCalls) {
	var now *effect
	if n := len(of.list); n > 0 && of.list[n-1].ended.IsZero() {
		now = of.list[n-1]
		if s.round.Time.Sub(now.seen) > effectSpan {
			now.ended = s.round.Time
			now = nil
		}
	}
	for _, in := range v.instances {
		if p := in.process; in.fresh && s.readNow(p) {
			r := recentOf(of.recent, in.ID)
			r.member = member{in.Version, in.Zone, in.Tags}
			r.add(step, &in.calls, p.Window)
			if now != nil {
				now.since(now.members, in.ID, r, p, &in.calls)
			}
		}
	}
	for _, c := range called {
		p := c.process
		if of.callers[p.Address] == nil {
			if e.callers >= maxComparedCallers {
				continue
			}
			e.callers++
		}
		r := recentOf(of.callers, p.Address)
		r.add(step, &c.calls, p.Window)
		if now != nil {
			now.since(now.callers, p.Address, r, p, &c.calls)
		}
	}
	for _, list := range [...]map[string]*recent{of.recent, of.callers} {
		maps.DeleteFunc(list, func(_ string, r *recent) bool { return r.last < step-2*beforeSteps })
	}
}

func recentOf(list map[string]*recent, key string) *recent {
	r := list[key]
	if r == nil {
		r = new(recent)
		list[key] = r
	}
	return r
}

// since adds the calls of a reading that has none from before the change.
func (x *effect) since(list map[string]*compared, key string, r *recent, p *collect.Process, calls *collect.Calls) {
	if p.Read.Add(-p.Window).Before(x.seen) {
		return
	}
	c := list[key]
	if c == nil {
		c = new(compared)
		list[key] = c
	}
	c.member = r.member
	c.since.add(calls, p.Window)
}

// effectOf answers with what a change of the rules of a service has changed.
func (c *Console) effectOf(s *snapshot, r *http.Request) (any, *respond.Error) {
	v, p := s.named(r)
	if p != nil {
		return nil, p
	}
	q := r.URL.Query()
	var version uint64
	if text := q.Get("version"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, respond.Problem(http.StatusBadRequest, fmt.Sprintf("version=%q is no version", model.Text(text)), "use a number, or leave it out for the last change")
		}
		version = n
	}
	by := q.Get("by")
	if groupBy(by) == nil && by != "" {
		return nil, respond.Problem(http.StatusBadRequest, fmt.Sprintf("by=%q is unknown", model.Text(by)), "use version, zone, instance or tag:NAME")
	}
	return c.effects.of(s, v.Name, version, by), nil
}

// groupBy returns what names the group of an instance, or nil.
func groupBy(by string) func(id string, m *member) string {
	switch by {
	case "version":
		return func(_ string, m *member) string { return m.version }
	case "zone":
		return func(_ string, m *member) string { return m.zone }
	case "instance":
		return func(id string, _ *member) string { return id }
	}
	if tag, ok := strings.CutPrefix(by, "tag:"); ok {
		return func(_ string, m *member) string { return m.tags[tag] }
	}
	return nil
}

// of returns the changes of the rules of a service with the effect of one of them, or of the last
// one if version is 0.
func (e *effects) of(s *snapshot, service string, version uint64, by string) *model.Effects {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := &model.Effects{Changes: []model.RulesChange{}}
	of := e.services[service]
	if of == nil {
		return out
	}
	var shown *effect
	for _, x := range slices.Backward(of.list) {
		out.Changes = append(out.Changes, x.RulesChange)
		if shown == nil && (version == 0 || x.Version == version) {
			shown = x
		}
	}
	if shown == nil && len(of.list) == 0 {
		shown = of.lastMinute(e.stepLocked(s))
	}
	if shown != nil {
		out.Shown = shown.compare(by)
	}
	return out
}

// lastMinute has the calls of the last minute in place of those since a change.
func (of *serviceEffects) lastMinute(step int64) *effect {
	x := &effect{members: make(map[string]*compared), callers: make(map[string]*compared)}
	for id, r := range of.recent {
		x.members[id] = &compared{member: r.member, since: r.sum(step)}
	}
	for address, r := range of.callers {
		x.callers[address] = &compared{since: r.sum(step)}
	}
	return x
}

// compare returns the figures of groups of instances. Without by, they are grouped by what tells
// some of them apart.
func (x *effect) compare(by string) *model.Effect {
	for _, next := range [...]string{"version", "zone", "instance"} {
		if by == "" && (next == "instance" || x.differ(groupBy(next))) {
			by = next
		}
	}
	of := groupBy(by)
	out := &model.Effect{RulesChange: x.RulesChange, By: by}
	if !x.ended.IsZero() {
		out.Ended = x.ended.UTC()
	}
	groups := map[string][]*compared{}
	all := []*compared{}
	for id, c := range x.members {
		name := of(id, &c.member)
		groups[name] = append(groups[name], c)
		all = append(all, c)
	}
	whole, callers := spansOf(all), slices.Collect(maps.Values(x.callers))
	for name, list := range groups {
		out.Groups = append(out.Groups, groupOf(name, list, whole))
	}
	slices.SortFunc(out.Groups, func(a, b model.EffectGroup) int {
		if by == "instance" {
			return cmp.Or(cmp.Compare(b.Since.Rate, a.Since.Rate), compareNames(a.Name, b.Name))
		}
		return compareNames(a.Name, b.Name)
	})
	out.More = max(len(out.Groups)-maxGroups, 0)
	out.Groups = append([]model.EffectGroup{groupOf("", all, whole)}, out.Groups[:len(out.Groups)-out.More]...)
	out.Callers = groupOf("", callers, spansOf(callers))
	return out
}

// differ reports whether there are several groups.
func (x *effect) differ(of func(id string, m *member) string) bool {
	first, known := "", false
	for id, c := range x.members {
		name := of(id, &c.member)
		if known && name != first {
			return true
		}
		first, known = name, true
	}
	return false
}

// spans are the longest times that an instance or a caller was read before a change and since.
type spans struct{ before, since time.Duration }

func spansOf(list []*compared) (out spans) {
	for _, c := range list {
		out.before, out.since = max(out.before, c.before.span), max(out.since, c.since.span)
	}
	return out
}

func groupOf(name string, list []*compared, of spans) model.EffectGroup {
	return model.EffectGroup{
		Name: name, Instances: len(list),
		Before: figuresOf(list, of.before, func(c *compared) *tally { return &c.before }),
		Since:  figuresOf(list, of.since, func(c *compared) *tally { return &c.since }),
	}
}

// over returns the time over which the calls have a rate. That is the whole one also for what was
// there for a part of it, but no calls are missed at its ends, where a reading has others as well.
func (t *tally) over(whole time.Duration) float64 {
	if whole-t.span <= 2*t.window {
		return t.span.Seconds()
	}
	return whole.Seconds()
}

// figuresOf returns the figures of instances in a span, for a part of which some may not have been
// there.
func figuresOf(list []*compared, span time.Duration, of func(*compared) *tally) (out model.EffectFigures) {
	var all tally
	rate, failed := 0.0, 0.0
	for _, c := range list {
		t := of(c)
		if t.span <= 0 {
			continue
		}
		all.merge(t)
		rate, failed = rate+float64(t.times.Count)/t.over(span), failed+t.failed/t.over(span)
		out.Span = max(out.Span, t.span)
	}
	if out.Span <= 0 {
		return out
	}
	out.Known = true
	out.Rate, out.Failed = round(rate), round(failed)
	out.P50, out.P99 = all.times.Quantile(0.5), all.times.Quantile(0.99)
	return out
}
