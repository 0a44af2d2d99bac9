package balance_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// at returns endpoints with these instances, and sets their services and addresses.
func at(instances ...registry.Instance) []*balance.Endpoint {
	list := endpointsWith(make([]int, len(instances))...)
	for i, in := range instances {
		in.Service = "arith"
		if in.Address == "" {
			in.Address = list[i].Instance().Address
		}
		list[i].SetInstance(in)
	}
	return list
}

// place returns an instance at a position.
func place(latitude, longitude float64) registry.Instance {
	return registry.Instance{Latitude: latitude, Longitude: longitude}
}

func TestClosestIsTheNearestOnTheGlobe(t *testing.T) {
	for _, c := range []struct {
		name        string
		here        balance.Here
		near, other registry.Instance
	}{
		{"Munich: Frankfurt before Milan", munich, place(50.11, 8.68), place(45.46, 9.19)},
		{"Fiji: Samoa lies beyond the date line", balance.Here{Latitude: -17.7, Longitude: 178}, place(-13.8, -171.8), place(-9.4, 160)},
		{"near the pole, longitudes lie close together", balance.Here{Latitude: 89, Longitude: 0}, place(89, 180), place(80, 0)},
		{"Singapore: Jakarta beyond the equator", balance.Here{Latitude: 1.3, Longitude: 103.8}, place(-6.2, 106.8), place(22.3, 114.2)},
		{"unknown places come last", munich, place(-33.9, 151.2), registry.Instance{}},
	} {
		list := at(c.other, c.near)
		if got := picks(balance.Closest(c.here).Build(list), list, 100); got[1] != 100 {
			t.Errorf("%s: %d of 100 calls go there", c.name, got[1])
		}
	}
}

// The attempt goes to the nearest endpoint that is not busy, whatever the order of the list.
func TestClosestSpillsOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		here := munich
		here.Full = rapid.IntRange(1, 5).Draw(t, "full")
		n := rapid.IntRange(2, 8).Draw(t, "endpoints")
		north := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
			for i := range n {
				if !yield(i) {
					return
				}
			}
		})).Draw(t, "degrees north")
		instances := make([]registry.Instance, n)
		for i := range instances {
			instances[i] = place(munich.Latitude+float64(north[i]), munich.Longitude)
		}
		list := at(instances...)
		picker := balance.Closest(here).Build(list)
		for attempt := range n * here.Full {
			e := picker.Pick(nil)
			if got, want := north[slices.Index(list, e)], attempt/here.Full; got != want {
				t.Fatalf("attempt %d goes %d degrees north: want %d", attempt, got, want)
			}
			e.Begin()
		}
		last := picker.Pick(nil)
		if last == nil {
			t.Fatal("all are busy, and nobody is picked")
		}
		back := rapid.IntRange(0, n-1).Draw(t, "has room again")
		list[back].Abort()
		if picker.Pick(nil) != list[back] {
			t.Fatal("the only endpoint with room is not picked")
		}
	})
}

// Endpoints in the same place share the calls by weight, and are busy by weight.
func TestClosestSharesAmongNeighbours(t *testing.T) {
	list := at(place(48.1, 11.5), place(48.1, 11.5), place(48.15, 11.55), place(50, 8))
	weights := []int{100, 200, 100, 200}
	for i, e := range list {
		in := *e.Instance()
		in.Weight = weights[i]
		e.SetInstance(in)
	}
	here := munich
	here.Full = 30 // at the mean weight, which is 150
	picker := balance.Closest(here).Build(list)
	for range 80 {
		picker.Pick(nil).Begin()
	}
	for i, want := range []int64{20, 40, 20, 0} {
		if got := list[i].Active(); got < want-1 || got > want+1 {
			t.Errorf("endpoint %d has %d attempts: want about %d", i, got, want)
		}
	}
	for range 5 {
		picker.Pick(nil).Begin()
	}
	if got := list[3].Active(); got < 3 {
		t.Errorf("the near ones are busy, and %d of 5 attempts go to the far one", got)
	}
}

// With a thousand places a pick looks at some of them only, and still finds free ones, and returns
// to nearer ones.
func TestClosestOfAThousandPlaces(t *testing.T) {
	instances := make([]registry.Instance, 1000)
	for i := range instances {
		instances[i] = place(munich.Latitude, munich.Longitude+float64(i)/10*1.7)
		if instances[i].Longitude > 180 {
			instances[i].Longitude -= 360
		}
	}
	here := munich
	here.Full = 2
	list := at(instances...)
	picker := balance.Closest(here).Build(list)
	for range 600 {
		picker.Pick(nil).Begin()
	}
	far := 0
	for i, e := range list {
		if east := math.Abs(float64(i) * .17); east > 60 && east < 300 && e.Active() > 0 {
			far++
		}
	}
	if far > 0 {
		t.Errorf("%d endpoints far away have attempts, though 600 fit the nearer ones", far)
	}
	for _, e := range list {
		for e.Active() > 0 {
			e.Abort()
		}
	}
	for range 5000 {
		e := picker.Pick(nil)
		e.Begin()
		e.Abort()
	}
	if picker.Pick(nil) != list[0] {
		t.Error("nothing is in flight, and a call does not go to the nearest")
	}
}

func TestLocalFirst(t *testing.T) {
	here := balance.Here{Zone: "zone-a", Hosts: []string{"10.1.2.3", "Build-7", "fd00::1"}, Full: 1}
	for _, c := range []struct {
		in   registry.Instance
		tier int
	}{
		{registry.Instance{Address: "10.1.2.3:80", Zone: "zone-b"}, 0},
		{registry.Instance{Address: "build-7:80"}, 0},
		{registry.Instance{Address: "[fd00:0:0::1]:80"}, 0},
		{registry.Instance{Address: "[::ffff:10.1.2.3]:80"}, 0},
		{registry.Instance{Address: "127.0.0.1:80"}, 0},
		{registry.Instance{Address: "localhost:80"}, 0},
		{registry.Instance{Address: "unix:///run/a.sock"}, 0},
		{registry.Instance{Address: "10.9.9.9:80", Zone: "zone-a"}, 1},
		{registry.Instance{Address: "10.9.9.9:80", Zone: "zone-b"}, 2},
		{registry.Instance{Address: "10.9.9.9:80"}, 2},
	} {
		rivals := []registry.Instance{
			{Address: "127.0.0.1:9"}, {Address: "10.8.8.8:9", Zone: "zone-a"}, {Address: "10.7.7.7:9", Zone: "zone-c"},
		}
		for tier, rival := range rivals {
			list := at(c.in, rival)
			got := picks(balance.LocalFirst(here).Build(list), list, 200)[0]
			if c.tier < tier && got != 200 || c.tier > tier && got != 0 || c.tier == tier && (got == 0 || got == 200) {
				t.Errorf("%s in %q gets %d of 200 calls beside tier %d: want it in tier %d", c.in.Address, c.in.Zone, got, tier, c.tier)
			}
		}
	}
}

func TestLocalFirstSpillsOver(t *testing.T) {
	list := at(registry.Instance{Address: "10.0.0.1:1"}, registry.Instance{Zone: "z"}, registry.Instance{Address: "127.0.0.1:1"})
	picker := balance.LocalFirst(balance.Here{Zone: "z", Full: 2}).Build(list)
	var got []int
	for range 6 {
		e := picker.Pick(nil)
		e.Begin()
		got = append(got, slices.Index(list, e))
	}
	if want := []int{2, 2, 1, 1, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("attempts go to %v: want %v", got, want)
	}
}

// Two instances without a zone are not in the same zone.
func TestLocalFirstWithoutAZone(t *testing.T) {
	list := at(registry.Instance{}, registry.Instance{Zone: "z"})
	got := picks(balance.LocalFirst(balance.Here{Hosts: []string{}}).Build(list), list, 1000)
	if got[0] < 300 || got[1] < 300 {
		t.Errorf("calls are shared %v: want halves", got)
	}
}

func TestHereThatCannotWork(t *testing.T) {
	for want, b := range map[string]balance.Balancer{
		"Here.Latitude":           balance.Closest(balance.Here{}),
		"degrees from -90 to 90":  balance.Closest(balance.Here{Latitude: 91}),
		"from -180 to 180":        balance.Closest(balance.Here{Latitude: 1, Longitude: math.NaN()}),
		"full with -1":            balance.Closest(balance.Here{Latitude: 1, Full: -1}),
		"full with -2 attempts: ": balance.LocalFirst(balance.Here{Full: -2}),
	} {
		err := b.(interface{ Validate() error }).Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
		list := endpointsWith(1, 1)
		if b.Build(list).Pick(nil) == nil {
			t.Errorf("%s: a picker that was built all the same picks nothing", want)
		}
	}
	for _, b := range []balance.Balancer{balance.Closest(munich), balance.LocalFirst(balance.Here{})} {
		if err := b.(interface{ Validate() error }).Validate(); err != nil {
			t.Error(err)
		}
	}
}
