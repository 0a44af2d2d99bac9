package console

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/registry"
)

// maxChanges is the number of changes that are kept.
const maxChanges = 1000

// changeLog keeps the latest changes. Its methods are safe for concurrent use.
type changeLog struct {
	mu    sync.Mutex // guards the fields below
	list  []model.Change
	fresh []model.Change // since the last call of take
}

func (l *changeLog) add(list ...model.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, list...)
	l.list = slices.Delete(l.list, 0, max(len(l.list)-maxChanges, 0))
	l.fresh = append(l.fresh, list...)
	l.fresh = slices.Delete(l.fresh, 0, max(len(l.fresh)-maxChanges, 0))
}

// take returns the changes since its last call, the last one first.
func (l *changeLog) take() []model.Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := append([]model.Change{}, l.fresh...)
	l.fresh = nil
	slices.Reverse(out)
	return out
}

// latest returns up to n changes, the last one first: of a service if it is not "", and before a
// time unless that is zero.
func (l *changeLog) latest(n int, service string, before time.Time) []model.Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []model.Change{}
	for _, c := range slices.Backward(l.list) {
		if len(out) == n {
			break
		}
		if (service == "" || c.Service == service) && (before.IsZero() || c.Time.Before(before)) {
			out = append(out, c)
		}
	}
	return out
}

// since returns what is different from the snapshot before.
func (s *snapshot) since(before *snapshot) (list []model.Change) {
	if before == nil {
		return nil
	}
	add := func(kind, service, instance, by, format string, args ...any) {
		list = append(list, model.Change{
			Time: s.system.Time, Kind: kind, Service: service, Instance: instance, Text: model.Text(fmt.Sprintf(format, args...)), By: by,
		})
	}
	for i := range s.system.Registries {
		now := &s.system.Registries[i]
		switch was := &before.system.Registries[i]; {
		case was.Healthy && !now.Healthy:
			add(model.OfStore, "", "", "", "the registry %s does not answer: %s", now.Name, now.Trouble)
		case !was.Healthy && now.Healthy && !was.Since.IsZero():
			add(model.OfStore, "", "", "", "the registry %s answers", now.Name)
		}
	}
	for name, v := range s.services {
		if was := before.services[name]; was != nil && v.state != nil && was.state != nil {
			v.since(was, add)
		}
	}
	for key := range s.breakers {
		if !before.breakers[key] {
			add(model.Breaker, key.service, key.instance, "", "the breaker of %s for %s opened", key.by, key.method)
		}
	}
	for key := range before.breakers {
		if !s.breakers[key] {
			add(model.Breaker, key.service, key.instance, "", "the breaker of %s for %s is no longer open", key.by, key.method)
		}
	}
	slices.SortStableFunc(list, func(a, b model.Change) int { return len(a.Service) - len(b.Service) })
	return list
}

// byRule says that a rule of the author has set a property of an instance, or no longer sets it.
func byRule(in, was *instanceView, property, author string) (text, by string) {
	switch now := slices.Contains(in.ByRule, property); {
	case now:
		return ", by a rule", author
	case slices.Contains(was.ByRule, property):
		return ", as the rule is gone", author
	}
	return "", ""
}

type addChange = func(kind, service, instance, by, format string, args ...any)

// since adds what is different from a service before.
func (v *serviceView) since(was *serviceView, add addChange) {
	r, old := &v.state.Rules, &was.state.Rules
	if was.state.Known && v.state.Known {
		v.instancesSince(was, add)
	}
	if r.Known && old.Known && (r.Version != old.Version || r.Trouble != old.Trouble) {
		switch {
		case r.Trouble != "":
			add(model.RulesSet, v.Name, "", "", "the rules cannot be read: %s", r.Trouble)
		case r.Version == 0:
			add(model.RulesSet, v.Name, "", "", "the rules were deleted")
		case r.Comment != "":
			add(model.RulesSet, v.Name, "", r.Author, "version %d of the rules: %s", r.Version, r.Comment)
		default:
			add(model.RulesSet, v.Name, "", r.Author, "version %d of the rules", r.Version)
		}
	}
	for name, m := range v.methods {
		if o := was.methods[name]; o != nil {
			m.refusedSince(o, func(format string, args ...any) { add(model.Limit, v.Name, "", "", format, args...) }, name)
		}
	}
}

// calmAfter is how long a method must refuse no calls until that is an end: refusals of a limit
// come and go.
const calmAfter = 10 * time.Second

// limited returns how many calls per second limits refuse. Others do not run either, such as those
// of unknown methods, without a right or at an instance that drains.
func limited(c *collect.Calls) float64 { return min(c.Refused, c.Codes[anser.ResourceExhausted]) }

// refusedSince adds that limits refuse calls of a method, or no longer.
func (m *methodView) refusedSince(was *methodView, add func(format string, args ...any), name string) {
	m.refused = was.refused
	switch refused := limited(&m.calls); {
	case m.calls.Window == 0 || was.calls.Window == 0:
	case refused > 0:
		if was.refused.IsZero() {
			add("limits refuse %.1f calls of %s per second", refused, name)
		}
		m.refused = m.read
	case !was.refused.IsZero() && m.read.Sub(was.refused) >= calmAfter:
		add("limits no longer refuse calls of %s", name)
		m.refused = time.Time{}
	}
}

// instancesSince compares two sorted lists of instances.
func (v *serviceView) instancesSince(was *serviceView, add addChange) {
	old := make(map[string]*instanceView)
	for _, in := range was.instances {
		old[in.ID] = in
	}
	for _, in := range v.instances {
		o := old[in.ID]
		if o == nil {
			add(model.Joined, v.Name, in.ID, "", "joined at %s%s", in.Address, versionText(in.Version))
			continue
		}
		delete(old, in.ID)
		in.since(o, v.Name, add)
		if v.state.Rules.Known == was.state.Rules.Known { // else the first rules would look like a change
			author := ""
			if r, old := &v.state.Rules, &was.state.Rules; r.Version != old.Version {
				author = r.Author
			}
			in.adjustedSince(o, v.Name, author, add)
		}
	}
	for _, in := range was.instances {
		if old[in.ID] != nil {
			add(model.Left, v.Name, in.ID, "", "left the registry")
		}
	}
}

func versionText(version string) string {
	if version == "" {
		return ""
	}
	return ", version " + version
}

// adjustedSince adds what rules, or the instance itself, have changed since before.
func (in *instanceView) adjustedSince(o *instanceView, service, author string, add addChange) {
	if in.State != o.State {
		text, by := byRule(in, o, "state", author)
		add(model.State, service, in.ID, by, "%s, was %s%s", in.State, o.State, text)
	}
	if in.Weight != o.Weight {
		text, by := byRule(in, o, "weight", author)
		add(model.Weight, service, in.ID, by, "weight %d, was %d%s", in.Weight, o.Weight, text)
	}
}

// since adds what is different from an instance before.
func (in *instanceView) since(o *instanceView, service string, add addChange) {
	switch {
	case in.Health == model.Ejected && o.Health != model.Ejected:
		add(model.Eject, service, in.ID, "", "ejected by %s: %s", in.said.by, in.said.why)
	case in.Health == model.Down && o.Health != model.Down:
		add(model.Eject, service, in.ID, "", "%s cannot reach it", in.said.by)
	case o.out() && in.Health == model.OK && in.State == registry.Up.String():
		add(model.Returned, service, in.ID, "", "callers reach it again")
	}
	switch {
	case in.process == nil || o.process == nil:
	case in.process.ID != o.process.ID && o.process.ID != "" && in.process.ID != "":
		add(model.OfProcess, service, in.ID, "", "a new process serves it, started at %s UTC", in.Started.UTC().Format(time.TimeOnly))
	case !in.fresh && o.fresh && in.process.Error != "": // without an error, the page of a new process was not read yet
		add(model.OfProcess, service, in.ID, "", "its admin page does not answer: %s", in.process.Error)
	case in.fresh && !o.fresh && o.process.ID != "":
		add(model.OfProcess, service, in.ID, "", "its admin page answers again")
	}
}
