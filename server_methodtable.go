package anser

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// methodTable holds the methods that a server serves. Methods may be added at any time; they are
// never changed, and only foreign ones are removed. A connection looks a name up once, when the
// client announces it, so that no call takes the lock.
type methodTable struct {
	version atomic.Uint64 // of the methods; grows when methods are added or removed

	mu      sync.RWMutex // guards the fields below
	methods map[string]*method
	aliases map[string]*alias
}

// entry is a method to add, with its options.
type entry struct {
	method  *method
	options *handleOptions
}

// names calls f for each name of the method, with the alias that counts its use, or nil for the
// canonical name.
func (e *entry) names(f func(name string, a *alias) error) error {
	if err := f(e.method.name, nil); err != nil {
		return err
	}
	for _, name := range e.options.aliases {
		if err := f(name, &alias{method: e.method}); err != nil {
			return err
		}
	}
	for _, name := range e.options.deprecated {
		if err := f(name, &alias{method: e.method, deprecated: true}); err != nil {
			return err
		}
	}
	return nil
}

// check returns why the methods cannot be added in place of those with the names in remove, or nil.
func (t *methodTable) check(remove []string, entries []entry) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.checkLocked(remove, entries)
}

func (t *methodTable) checkLocked(remove []string, entries []entry) error {
	leaves := make(map[string]bool)
	for _, name := range remove {
		if m := t.methods[name]; m == nil || !m.foreign || m.name != name {
			return fmt.Errorf("method %q cannot be removed: it is not one that ReplaceDynamic or HandleDynamic has added as Foreign", name)
		}
		leaves[name] = true
	}
	taken := make(map[string]bool)
	for _, e := range entries {
		err := e.names(func(name string, _ *alias) error {
			if !e.method.foreign {
				if err := checkName(name, e.method.builtin); err != nil {
					return err
				}
			}
			if t.methods[name] != nil && !leaves[name] || taken[name] {
				return fmt.Errorf("method %q is there already: give the second one another name", name)
			}
			taken[name] = true
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// enter adds the methods in place of those with the names in remove, or it changes nothing. A
// method continues the counters of one with its name. guard makes the limits of each of them.
func (t *methodTable) enter(remove []string, entries []entry, guard func(*method, *handleOptions) *methodLimits) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkLocked(remove, entries); err != nil {
		return err
	}
	left := make(map[string]*method)
	for _, name := range remove {
		if left[name] == nil {
			left[name] = t.methods[name]
		}
		delete(t.methods, name)
		for alias, a := range t.aliases {
			if a.method == left[name] {
				delete(t.methods, alias)
				delete(t.aliases, alias)
			}
		}
	}
	if t.methods == nil {
		t.methods, t.aliases = make(map[string]*method), make(map[string]*alias)
	}
	for _, e := range entries {
		e.method.limits = guard(e.method, e.options)
		if old := left[e.method.name]; old != nil {
			e.method.calls.Add(0, old.calls.Load())
			e.method.failed.Store(old.failed.Load())
			e.method.refused.Store(old.refused.Load())
		}
		e.names(func(name string, a *alias) error {
			t.methods[name] = e.method
			if a != nil {
				t.aliases[name] = a
			}
			return nil
		})
	}
	t.version.Add(1)
	return nil
}

// find returns the method of a name, or nil, and the alias that the name is, or nil. foreign says
// that the method is called over another protocol than Anser's own.
func (t *methodTable) find(name string, foreign bool) (*method, *alias) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	m := t.methods[name]
	if m == nil || m.foreign && !foreign || m.builtin && foreign {
		return nil, nil
	}
	return m, t.aliases[name]
}

// each calls f for all names in order, with the alias that the name is, or nil. f may be slow.
func (t *methodTable) each(f func(name string, m *method, a *alias)) {
	t.mu.RLock()
	methods, aliases := maps.Clone(t.methods), maps.Clone(t.aliases)
	t.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		f(name, methods[name], aliases[name])
	}
}

// resolve looks up the method of n again if methods were added since the last time.
func (t *methodTable) resolve(n *named) {
	version := t.version.Load()
	if n.name == "" || n.looked == version {
		return
	}
	n.looked = version
	if n.method, n.alias = t.find(n.name, n.foreign); n.method != nil {
		n.decided = nil // the policy was asked about another name if this is an alias
	}
	n.hint = ""
}
