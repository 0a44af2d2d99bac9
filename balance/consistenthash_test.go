package balance_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// keyed returns the i-th of many requests with different keys.
func keyed(i int) *balance.Request {
	return &balance.Request{Method: "User.Get", Key: balance.Hash(fmt.Sprint("user-", i))}
}

// owners returns the addresses of the endpoints of the first n keys.
func owners(picker balance.Picker, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = picker.Pick(keyed(i)).Instance().Address
	}
	return list
}

// keepers are the balancers that send calls with the same key to the same endpoint.
var keepers = []func() balance.Balancer{balance.ConsistentHash, balance.Maglev}

// Another process has its own Endpoints, in any order; and the choices are listed here, so that
// later versions make the same ones.
func TestSameKeySameInstanceEverywhere(t *testing.T) {
	golden := map[string][]string{
		"consistent_hash": {"10.0.0.6:80", "10.0.0.6:80", "10.0.0.2:80", "10.0.0.6:80", "10.0.0.6:80", "10.0.0.4:80", "10.0.0.6:80", "10.0.0.5:80"},
		"maglev":          {"10.0.0.6:80", "10.0.0.0:80", "10.0.0.6:80", "10.0.0.6:80", "10.0.0.1:80", "10.0.0.1:80", "10.0.0.4:80", "10.0.0.0:80"},
	}
	for _, keeper := range keepers {
		list := endpointsWith(100, 200, 100, 50, 0, 100, 300)
		want := owners(keeper().Build(list), 1000)
		if got := want[:8]; !slices.Equal(got, golden[keeper().Name()]) {
			t.Errorf("%s: the first keys go to %q: want %q, as in all versions", keeper().Name(), got, golden[keeper().Name()])
		}
		for range 5 {
			rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			if got := owners(keeper().Build(list), len(want)); !slices.Equal(got, want) {
				t.Fatalf("%s: another order of the list moves keys", keeper().Name())
			}
		}
	}
}

// The hash depends on the content of the key, not on its address, and small numbers are keys like
// any other.
func TestKeyHash(t *testing.T) {
	payload := func() []byte { return append(make([]byte, 0, 64), "the same request"...) }
	a := balance.Request{Method: "User.Get", Payload: payload()}
	b := balance.Request{Method: "User.Get", Payload: payload()}
	if a.KeyHash() != b.KeyHash() {
		t.Error("the same bytes at two addresses have different hashes")
	}
	b.Method = "User.Put"
	if a.KeyHash() == b.KeyHash() {
		t.Error("calls of two methods without a key have the same hash")
	}
	a.Key, b.Key = 17, 17
	if a.KeyHash() != b.KeyHash() {
		t.Error("the method is part of a key that was given")
	}
	if top := func(key uint64) uint64 { return (&balance.Request{Key: key}).KeyHash() >> 56 }; top(1) == top(2) && top(2) == top(3) {
		t.Error("small numbers have the same upper bits")
	}
	empty := balance.Request{Method: "User.List", Payload: []byte{}}
	if first, second := empty.KeyHash(), empty.KeyHash(); first != second {
		t.Error("an empty request has no stable hash")
	}
	for _, nothing := range []*balance.Request{nil, {}, {Method: "User.List"}} {
		if first, second := nothing.KeyHash(), nothing.KeyHash(); first == second {
			t.Error("calls about nothing all have the same hash: want a random one")
		}
	}
}

// When an endpoint leaves, only its keys move; when one joins, keys move to it only.
func TestConsistentHashMovesOnlyWhatItMust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.OneOf(rapid.Just(100), rapid.IntRange(40, 300))
		weights := rapid.SliceOfN(weight, 2, 30).Draw(t, "weights")
		list := endpointsWith(weights...)
		out := rapid.IntRange(0, len(list)-1).Draw(t, "who leaves")
		gone := list[out].Instance().Address
		const n = 2000
		before := owners(balance.ConsistentHash().Build(list), n)
		after := owners(balance.ConsistentHash().Build(slices.Delete(slices.Clone(list), out, out+1)), n)
		moved := 0
		for i := range before {
			if before[i] == after[i] {
				continue
			}
			moved++
			if before[i] != gone {
				t.Fatalf("key %d moved from %s to %s, though %s left", i, before[i], after[i], gone)
			}
		}
		// The standard deviation of a share is 1/sqrt(weight) of it, and that of the sample less.
		share := float64(weights[out]) / float64(sum(weights))
		limit := share*(1+6/math.Sqrt(float64(weights[out]))) + 6*math.Sqrt(share/n) + 2./n
		if got := float64(moved) / n; got > limit {
			t.Fatalf("%.3f of the keys moved, the share is %.3f: want %.3f at most", got, share, limit)
		}
	})
}

func TestConsistentHashFollowsWeights(t *testing.T) {
	for _, weights := range [][]int{slices.Repeat([]int{0}, 10), {100, 200, 300, 400}, {1, 2, 1}, {500_000, 1_000_000}} {
		list := endpointsWith(weights...)
		picker := balance.ConsistentHash().Build(list)
		counts := make([]int, len(list))
		const n = 50_000
		for i := range n {
			counts[slices.Index(list, picker.Pick(keyed(i)))]++
		}
		if weights[0] == 0 {
			weights = slices.Repeat([]int{1}, len(list))
		}
		for i, want := range shares(weights) {
			if got := float64(counts[i]) / n; got < want*.6 || got > want*1.4 {
				t.Errorf("weights %v: endpoint %d has %.3f of the keys: want about %.3f", weights, i, got, want)
			}
		}
	}
}

// However hot a key is, no endpoint has more than eight attempts and 1.25 times its share of all.
func TestConsistentHashBoundsLoads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(50, 400), 2, 16).Draw(t, "weights")
		keys := rapid.IntRange(1, 20).Draw(t, "keys")
		list := endpointsWith(weights...)
		picker := balance.ConsistentHash().Build(list)
		all := float64(sum(weights))
		for attempt := range 600 {
			e := picker.Pick(keyed(attempt % keys))
			e.Begin()
			i := slices.Index(list, e)
			bound := max(8, math.Ceil(1.25*float64(attempt+1)*float64(weights[i])/all+1e-6))
			if got := float64(e.Active()); got > bound {
				t.Fatalf("endpoint %d has %v of %d attempts: want %v at most", i, got, attempt+1, bound)
			}
		}
	})
}

// Above 16 endpoints the sum is an estimate, and the bound nearly as tight.
func TestConsistentHashBoundsLoadsOfMany(t *testing.T) {
	for _, n := range []int{17, 100, 1000} {
		list := endpointsWith(make([]int, n)...)
		picker := balance.ConsistentHash().Build(list)
		for range 20 * n {
			picker.Pick(keyed(1)).Begin() // all with the same key
		}
		for i, e := range list {
			if e.Active() > 40 {
				t.Errorf("endpoint %d of %d has %d attempts: the mean is 20, want about 25 at most", i, n, e.Active())
			}
		}
	}
}

func TestConsistentHashComesBackWhenThereIsRoom(t *testing.T) {
	list := endpointsWith(1, 1, 1)
	picker := balance.ConsistentHash().Build(list)
	own := picker.Pick(keyed(1))
	for range 8 {
		own.Begin()
	}
	other := picker.Pick(keyed(1))
	if other == own {
		t.Fatal("eight attempts in flight of eight at all, and the key still goes there")
	}
	if again := picker.Pick(keyed(1)); again != other {
		t.Error("what there is no room for goes to two endpoints")
	}
	own.Abort()
	if picker.Pick(keyed(1)) != own {
		t.Error("there is room again, and the key goes elsewhere")
	}
}

// A further attempt goes to the endpoint that takes over the key if the first one is removed.
func TestFurtherAttemptsOfAKeyGoToItsNextOwner(t *testing.T) {
	list := endpointsWith(make([]int, 10)...)
	picker := balance.ConsistentHash().Build(list)
	for i := range 200 {
		r := keyed(i)
		own := picker.Pick(r)
		r.Tried = []*balance.Endpoint{own}
		next := picker.Pick(r)
		rest := slices.DeleteFunc(slices.Clone(list), func(e *balance.Endpoint) bool { return e == own })
		if want := balance.ConsistentHash().Build(rest).Pick(keyed(i)); next != want {
			t.Fatalf("key %d goes to %s: want %s", i, next.Instance().Address, want.Instance().Address)
		}
	}
}

// An endpoint that is half warm has half of its keys, and gets the others one by one.
func TestConsistentHashWarmsUpKeyByKey(t *testing.T) {
	list := endpointsWith(100, 100, 100, 100)
	const n = 20_000
	last := owners(balance.ConsistentHash().Build(list[:3]), n)
	own := list[3].Instance().Address
	for _, warmth := range []int{10, 40, 70, 100} {
		list[3].SetWarmth(warmth)
		now := owners(balance.ConsistentHash().Build(list), n)
		has := 0
		for i := range now {
			if now[i] == own {
				has++
			} else if now[i] != last[i] {
				t.Fatalf("warmth %d: key %d moved from %s to %s", warmth, i, last[i], now[i])
			}
		}
		want := float64(warmth) / float64(warmth+300)
		if got := float64(has) / n; math.Abs(got-want) > want/2 {
			t.Errorf("warmth %d: %.3f of the keys: want about %.3f", warmth, got, want)
		}
		last = now
	}
}

// One heavy endpoint among a thousand light ones must not make a circle of millions of points.
func TestConsistentHashOfExtremeWeights(t *testing.T) {
	weights := slices.Repeat([]int{1}, 1000)
	weights[7] = registry.MaxWeight
	list := endpointsWith(weights...)
	picker := balance.ConsistentHash().Build(list)
	heavy := 0
	for i := range 5000 {
		if picker.Pick(keyed(i)) == list[7] {
			heavy++
		}
	}
	if heavy < 4500 {
		t.Errorf("%d of 5000 keys go to the endpoint with 99.9 %% of the weight", heavy)
	}
}
