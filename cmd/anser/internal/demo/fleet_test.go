package demo

import (
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
)

// A canary is listed with the other instances of its service, and leaves no trace.
func TestFleetCanary(t *testing.T) {
	f := newFleet("", "", "", nil, nil)
	defer f.close()
	ids := func() (all string) {
		for _, in := range f.instances {
			all += in.id + "@" + in.version + " "
		}
		return all
	}
	before := ids()
	canary := f.add("posts")
	if got := ids(); got != "arith-1@1.0 arith-2@1.0 arith-3@1.0 posts-1@1.0 posts-2@1.0 posts-3@1.0 posts-4@2.0 front-1@1.0 front-2@1.0 front-3@1.0 " {
		t.Error(got)
	}
	f.remove(canary)
	if got := ids(); got != before {
		t.Error(got)
	}
}

// mark has no effect on a process that has ended by itself.
func TestMark(t *testing.T) {
	f := newFleet("", "", "", nil, nil)
	defer f.close()
	in := f.instances[0]
	if f.mark(in, frozen); in.state != frozen {
		t.Error(in.state)
	}
	in.state = ended
	if f.mark(in, up); in.state != ended {
		t.Error(in.state)
	}
}

func TestHealthFollowed(t *testing.T) {
	var told []Event
	h := &health{tell: func(e Event) { told = append(told, e) }}
	happens := func(id string, what anser.HealthChange) {
		h.heard(anser.HealthEvent{Change: what, Instance: registry.Instance{ID: id}, Reason: "why"})
	}
	happens("arith-1", anser.InstanceEjected) // there is no follower
	changes, stop := h.follow("arith-1")
	happens("arith-2", anser.InstanceEjected)
	happens("arith-1", anser.BreakerOpened)
	happens("arith-1", anser.InstanceRestored)
	if got := []anser.HealthChange{(<-changes).what, (<-changes).what}; got[0] != anser.BreakerOpened || got[1] != anser.InstanceRestored || len(changes) > 0 {
		t.Error(got)
	}
	stop()
	happens("arith-1", anser.InstanceEjected)
	if len(changes) > 0 {
		t.Error("followed after the end")
	}
	kinds := ""
	for _, e := range told {
		kinds += e.Kind + " "
	}
	if kinds != "ejected ejected breaker restored ejected " {
		t.Error(kinds)
	}
}
