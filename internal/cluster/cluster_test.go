package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/cluster"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/registry"
)

// host is a host that connects when tried, unless it refuses, and tells its cluster.
type host struct {
	address string
	net     *network
	refuses bool

	mu     sync.Mutex
	reach  cluster.Reach
	silent bool
	tried  mono.Time
	spare  bool
}

var errRefused = errors.New("refused")

func (h *host) get() (cluster.Reach, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reach, h.silent
}

func (h *host) set(f func()) {
	h.mu.Lock()
	f()
	h.mu.Unlock()
	h.net.cluster.Rebuild()
}

func (h *host) Reach() cluster.Reach { r, _ := h.get(); return r }
func (h *host) Connected() bool      { return h.Reach().Ready }
func (h *host) Silent() bool         { _, silent := h.get(); return silent }
func (h *host) Judge()               {}
func (h *host) RedialNow()           {}

func (h *host) SetSpare(spare bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spare = spare
}

func (h *host) Seen(began mono.Time) cluster.Sight {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.reach.Ready:
		return cluster.Sight{State: cluster.Ready}
	case h.reach.Failed && h.tried >= began:
		return cluster.Sight{State: cluster.Failed, Tried: h.tried, Err: errRefused, Obstacle: 1}
	}
	return cluster.Sight{State: cluster.Idle}
}

func (h *host) Try(mono.Time) {
	h.net.wg.Go(func() {
		h.set(func() {
			h.tried = mono.Now()
			h.reach = cluster.Reach{Ready: !h.refuses, Failed: h.refuses, Met: !h.refuses}
		})
	})
}

// network has the hosts of a cluster.
type network struct {
	cluster *cluster.Cluster[*host, *string]
	wg      sync.WaitGroup
	refuse  bool // all hosts refuse

	mu       sync.Mutex
	hosts    map[string]*host
	released []string
	events   []cluster.Event
}

func newNetwork(t *testing.T, change func(*cluster.Options[*host, *string])) *network {
	n := &network{hosts: make(map[string]*host)}
	o := cluster.Options[*host, *string]{
		Balancer: balance.RoundRobin(),
		Breaker:  cluster.BreakerOptions{Ratio: 0.5, Calls: 10, Window: time.Second, Open: time.Second, Codes: []uint8{13}},
		Ejection: cluster.EjectionOptions{
			Failures: 5, Timeouts: 3, Deviations: 1.9, Calls: 100,
			Time: 2 * time.Second, MaxTime: 8 * time.Second, MaxPart: 0.5,
		},
		Log: slog.New(slog.DiscardHandler),
		Acquire: func(address string) *host {
			n.mu.Lock()
			defer n.mu.Unlock()
			h := &host{address: address, net: n, refuses: n.refuse}
			n.hosts[address] = h
			return h
		},
		Release: func(h *host) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.released = append(n.released, h.address)
		},
		Refresh: func() {},
		Emit: func(e cluster.Event) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.events = append(n.events, e)
		},
	}
	if change != nil {
		change(&o)
	}
	n.cluster = cluster.New(o)
	t.Cleanup(func() {
		n.cluster.Close()
		n.cluster.Join()
		n.wg.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.released) != len(n.hosts) {
			t.Errorf("%d hosts were released of %d", len(n.released), len(n.hosts))
		}
	})
	return n
}

func (n *network) list(count int) (list []registry.Instance) {
	for i := range count {
		list = append(list, registry.Instance{Service: "s", Address: fmt.Sprintf("host-%d:1", i)})
	}
	return list
}

// Wait returns the first view, or why there is none.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		trouble := errors.New("no route")
		n.cluster.Report(trouble)
		if v, absence := n.cluster.Wait(ctx); v != nil || absence.Closed || absence.Trouble != trouble {
			t.Errorf("without a list: %v, %+v", v, absence)
		}
		time.AfterFunc(time.Second, func() { n.cluster.Update(n.list(3), time.Time{}) })
		v, absence := n.cluster.Wait(t.Context())
		if absence != nil || v.Total != 3 || v.Usable != 3 {
			t.Fatalf("with a list of three: %+v, %+v", v, absence)
		}
		if list := v.PickSeveral(new(balance.Request), 5); len(list) != 3 {
			t.Errorf("%d endpoints were picked, want each of three once", len(list))
		}
		n.cluster.EndWith("it was enough")
		if v, absence := n.cluster.Wait(t.Context()); v != nil || !absence.Closed || absence.Reason != "it was enough" {
			t.Errorf("at the end: %v, %+v", v, absence)
		}
		n.cluster.Join()
		for _, h := range n.hosts { // EndWith releases nothing
			n.released = append(n.released, h.address)
		}
	})
}

// The view is replaced only if what can be picked has changed: nearly all changes of hosts are
// connections that were made.
func TestViewOfTheSameInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, nil)
		n.cluster.Update(n.list(3), time.Time{})
		first := n.cluster.View()
		h := n.hosts["host-1:1"]
		h.set(func() { h.reach = cluster.Reach{Ready: true, Met: true} })
		if n.cluster.View() != first {
			t.Error("a connection has replaced the view")
		}
		h.set(func() { h.reach = cluster.Reach{Failed: true, Met: true} })
		if v := n.cluster.View(); v.Usable != 2 || v.Total != 3 {
			t.Errorf("%d of %d instances are used without the one that was lost, want 2 of 3", v.Usable, v.Total)
		}
		h.set(func() { h.reach = cluster.Reach{Ready: true, Met: true} })
		if v := n.cluster.View(); v.Usable != 3 || v.Total != 3 {
			t.Errorf("%d of %d instances are used after its return, want 3 of 3", v.Usable, v.Total)
		}
		n.cluster.Update(n.list(4), time.Time{})
		if v := n.cluster.View(); v.Usable != 4 || v.Total != 4 {
			t.Errorf("%d of %d instances are used with a fourth, want 4 of 4", v.Usable, v.Total)
		}
	})
}

// A hunt finds the only host that connects among many, and says what it saw if there is none.
func TestHunt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, func(o *cluster.Options[*host, *string]) { o.SlowStart = time.Second })
		n.refuse = true
		n.cluster.Update(n.list(100), time.Time{})
		s := n.cluster.Hunt(t.Context(), nil)
		if s == nil || s.Cut || s.Total != 100 || s.Why != errRefused || s.Last == nil || s.Obstacle != 1 {
			t.Fatalf("all refuse, and the hunt found %+v", s)
		}
		n.hosts["host-70:1"].refuses = false
		time.Sleep(time.Second)
		if s := n.cluster.Hunt(t.Context(), nil); s != nil {
			t.Fatalf("one does not refuse, and the hunt found %+v", s)
		}
		e := n.cluster.Connected(new(balance.Request), n.cluster.View(), nil, nil)
		if e == nil || e.Host.address != "host-70:1" {
			t.Errorf("the connected endpoint is %v", e)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if s := n.cluster.Hunt(ended, nil); s == nil || !s.Cut {
			t.Errorf("after the end of its context a call got %+v", s)
		}
	})
}

// An instance that refuses is ejected, and a probe after a while brings it back.
func TestEjectionAndReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, nil)
		n.cluster.Update(n.list(4), time.Time{})
		m := &cluster.Method[*host, *string]{Name: "A.M"}
		bad := n.cluster.Find("host-0:1")
		for range 5 {
			if !bad.Suspect() {
				t.Fatal("failures do not count")
			}
			bad.Refused(m)
		}
		time.Sleep(time.Second)
		if v := n.cluster.View(); v.Usable != 3 || v.Has(bad) || !v.HasOther([]*balance.Endpoint{bad.Endpoint}) {
			t.Errorf("after five refusals %d instances are used", v.Usable)
		}
		probed := 0
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			if e := n.cluster.View().ForCall(m, nil).Pick(new(balance.Request)); e == bad {
				probed++
				e.Succeeded(m, time.Millisecond)
			}
		}
		if v := n.cluster.View(); v.Usable != 4 || probed < 3 {
			t.Errorf("after %d calls that tried it, %d instances are used", probed, v.Usable)
		}
		st := n.cluster.Status()
		n.mu.Lock()
		defer n.mu.Unlock()
		if st.Changes[cluster.InstanceEjected] != 1 || st.Changes[cluster.InstanceRestored] != 1 || len(n.events) != 2 {
			t.Errorf("changes %v, events %v", st.Changes, n.events)
		}
	})
}

// A breaker takes the instance away from its method only.
func TestBreakerIsOfAMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, nil)
		n.cluster.Update(n.list(2), time.Time{})
		failing, other := &cluster.Method[*host, *string]{Name: "A.M"}, &cluster.Method[*host, *string]{Name: "A.N", Index: 1}
		bad := n.cluster.Find("host-0:1")
		for range 10 {
			bad.Suspect()
			bad.Returned(failing, 13, time.Millisecond)
			bad.Returned(other, 5, time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond)
		v := n.cluster.View()
		if v.ForCall(failing, nil).Has(bad) || !v.ForCall(other, nil).Has(bad) || failing.View() == nil || other.View() != nil {
			t.Error("the breaker is not that of the method alone")
		}
		for _, in := range n.cluster.Status().Instances {
			if in.Endpoint == bad && (len(in.Breakers) != 1 || in.Breakers[0].State != cluster.Open || in.Breakers[0].Method != "A.M") {
				t.Errorf("the status has the breakers %+v", in.Breakers)
			}
		}
	})
}

// When most of a list vanishes at once, instances with working connections are kept until they
// fail.
func TestHeldInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, nil)
		n.cluster.Update(n.list(4), time.Time{})
		if holds := n.cluster.Update(n.list(1), time.Time{}); !holds || n.cluster.View().Total != 4 {
			t.Fatalf("held: %v, and %d instances are known", holds, n.cluster.View().Total)
		}
		h := n.hosts["host-2:1"]
		h.set(func() { h.reach = cluster.Reach{Failed: true} })
		if got := n.cluster.View().Total; got != 3 {
			t.Errorf("after one has failed, %d instances are known, want 3", got)
		}
	})
}

// A route selects a part, whose view is kept as long as nothing changes.
func TestRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, func(o *cluster.Options[*host, *string]) {
			o.Filters = func(address *string) []cluster.Filter {
				return []cluster.Filter{{Name: "address", Strict: true, Keep: func(in *registry.Instance) bool { return in.Address == *address }}}
			}
		})
		n.cluster.Update(n.list(3), time.Time{})
		here, nowhere := new("host-1:1"), new("nowhere:1")
		v := n.cluster.View()
		part := v.ForRoute(here)
		if part.Total != 1 || part != v.ForRoute(here) || part.Pick(new(balance.Request)).Host.address != *here {
			t.Errorf("the part has %d instances", part.Total)
		}
		if part := v.ForRoute(nowhere); part.Total != 0 || part.Pick(new(balance.Request)) != nil {
			t.Errorf("a part without instances has %d", part.Total)
		}
	})
}

// Of a large service a subset is used, and connections to the others are spare.
func TestSubset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, func(o *cluster.Options[*host, *string]) {
			o.Subset = cluster.SubsetOptions{From: 10, Size: 3, Seed: 7}
		})
		n.cluster.Update(n.list(20), time.Time{})
		spare := 0
		for _, h := range n.hosts {
			if h.spare {
				spare++
			}
		}
		if v := n.cluster.View(); v.Usable != 3 || v.Total != 20 || spare != 17 {
			t.Errorf("%d of %d instances are used, and %d are spare", v.Usable, v.Total, spare)
		}
	})
}
