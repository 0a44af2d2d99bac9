package balance_test

import (
	"testing"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// Every balancer says why it picked an endpoint.
func TestReasons(t *testing.T) {
	here := balance.Here{Zone: "north", Hosts: []string{"a"}, Latitude: 1, Longitude: 1, Full: 1}
	for _, test := range []struct {
		balancer     balance.Balancer
		first, tried balance.Reason // of the first attempt, and of one that has tried its endpoint
	}{
		{balance.Random(), balance.PickedByWeight, balance.PickedByWeight},
		{balance.RoundRobin(), balance.PickedInTurn, balance.PickedInTurn},
		{balance.Weighted(), balance.PickedInTurn, balance.PickedInTurn},
		{balance.LeastActive(), balance.PickedLeastLoaded, balance.PickedLeastLoaded},
		{balance.P2C(), balance.PickedBetter, balance.PickedOnly},
		{balance.Ping(), balance.PickedByLatency, balance.PickedByLatency},
		{balance.ConsistentHash(), balance.PickedByKey, balance.PickedNextToKey},
		{balance.Maglev(), balance.PickedByKey, balance.PickedNextToKey},
		{balance.Sticky(), balance.PickedKept, balance.PickedInstead},
		{balance.LocalFirst(here), balance.PickedOnHost, balance.PickedInZone},
		{balance.Closest(here), balance.PickedNearest, balance.PickedFarther},
	} {
		picker := test.balancer.Build([]*balance.Endpoint{
			balance.NewEndpoint(registry.Instance{ID: "a", Address: "a:1", Latitude: 1, Longitude: 1}),
			balance.NewEndpoint(registry.Instance{ID: "b", Address: "b:1", Zone: "north", Latitude: 9, Longitude: 9}),
		})
		r := &balance.Request{Method: "M", Key: 7, Reason: balance.PickedForFork}
		e := picker.Pick(r)
		if r.Reason != test.first {
			t.Errorf("%s: %q, want %q", test.balancer.Name(), r.Reason, test.first)
		}
		r.Tried = []*balance.Endpoint{e}
		picker.Pick(r)
		if r.Reason != test.tried {
			t.Errorf("%s with an endpoint that was tried: %q, want %q", test.balancer.Name(), r.Reason, test.tried)
		}
		r = new(balance.Request)
		if test.balancer.Build([]*balance.Endpoint{e}).Pick(r); r.Reason != balance.PickedOnly && test.balancer.Name() != "sticky" {
			t.Errorf("%s with one endpoint: %q", test.balancer.Name(), r.Reason)
		}
	}
	// Beyond the machine and the zone.
	picker := balance.LocalFirst(here).Build([]*balance.Endpoint{
		balance.NewEndpoint(registry.Instance{ID: "c", Address: "c:1"}), balance.NewEndpoint(registry.Instance{ID: "d", Address: "d:1"}),
	})
	r := new(balance.Request)
	e := picker.Pick(r)
	if r.Reason != balance.PickedFarther {
		t.Errorf("local_first without a local endpoint: %q", r.Reason)
	}
	e.Begin()
	picker.Pick(r).Begin()
	if picker.Pick(r); r.Reason != balance.PickedLeastLoaded {
		t.Errorf("local_first with busy endpoints: %q", r.Reason)
	}
}

// P2C says that it measures an endpoint that it knows nothing of.
func TestReasonOfProbe(t *testing.T) {
	list := []*balance.Endpoint{
		balance.NewEndpoint(registry.Instance{ID: "a", Address: "a:1"}), balance.NewEndpoint(registry.Instance{ID: "b", Address: "b:1"}),
	}
	list[0].Begin()
	list[0].End(1e9, 1000)
	r := new(balance.Request)
	if e := balance.P2C().Build(list).Pick(r); e != list[1] || r.Reason != balance.PickedToProbe {
		t.Errorf("%v, %q", e.Instance().ID, r.Reason)
	}
}

func TestReasonText(t *testing.T) {
	seen := make(map[string]bool)
	for r := range balance.PickedForFork + 1 {
		text, _ := r.MarshalText()
		var back balance.Reason
		if err := back.UnmarshalText(text); err != nil || back != r || seen[string(text)] {
			t.Errorf("%d is %q, and that is %d, %v", r, text, back, err)
		}
		seen[string(text)] = true
	}
	r := balance.PickedOnly
	if r.UnmarshalText([]byte("of a later version")); r != balance.Unexplained {
		t.Error(r)
	}
	if s := balance.Reason(200).String(); s != "reason 200" {
		t.Error(s)
	}
}
