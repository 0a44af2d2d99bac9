package balance_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// endpoint returns an endpoint at 10.0.0.n.
func endpoint(n int, in registry.Instance) *balance.Endpoint {
	in.Service, in.Address = "arith", fmt.Sprintf("10.0.0.%d:8972", n)
	return balance.NewEndpoint(in)
}

func Example() {
	endpoints := []*balance.Endpoint{
		endpoint(1, registry.Instance{Weight: 300}),
		endpoint(2, registry.Instance{}), // the default, 100
	}
	picker := balance.Weighted().Build(endpoints)
	calls := make(map[string]int)
	for range 400 {
		endpoint := picker.Pick(&balance.Request{Method: "Arith.Mul"})
		endpoint.Begin()
		calls[endpoint.Instance().Address]++
		endpoint.End(0, 0) // the time now, and how long it took
	}
	fmt.Println(calls)
	// Output: map[10.0.0.1:8972:300 10.0.0.2:8972:100]
}

// Calls for one user go to one instance. When an instance leaves, only its users move.
func ExampleConsistentHash() {
	endpoints := []*balance.Endpoint{
		endpoint(1, registry.Instance{}), endpoint(2, registry.Instance{}), endpoint(3, registry.Instance{}),
	}
	users := []string{"ann", "dora", "emil", "fred"}
	for _, list := range [][]*balance.Endpoint{endpoints, endpoints[1:]} {
		picker := balance.ConsistentHash().Build(list)
		var homes []string
		for _, user := range users {
			homes = append(homes, user+" at "+picker.Pick(&balance.Request{Key: balance.Hash(user)}).Instance().Address)
		}
		fmt.Println(strings.Join(homes, ", "))
	}
	// Output:
	// ann at 10.0.0.1:8972, dora at 10.0.0.2:8972, emil at 10.0.0.1:8972, fred at 10.0.0.2:8972
	// ann at 10.0.0.3:8972, dora at 10.0.0.2:8972, emil at 10.0.0.3:8972, fred at 10.0.0.2:8972
}

// An instance that comes back starts with a tenth of its weight. A client does this by itself with
// anser.SlowStart.
func ExampleEndpoint_SetWarmth() {
	old, fresh := endpoint(1, registry.Instance{}), endpoint(2, registry.Instance{})
	for _, warmth := range []int{10, 50, 100} {
		fresh.SetWarmth(warmth)
		picker := balance.Weighted().Build([]*balance.Endpoint{old, fresh})
		calls := 0
		for range 1000 {
			if picker.Pick(nil) == fresh {
				calls++
			}
		}
		fmt.Printf("at %d%%: %.0f of 100 calls\n", warmth, float64(calls)/10)
	}
	// Output:
	// at 10%: 9 of 100 calls
	// at 50%: 33 of 100 calls
	// at 100%: 50 of 100 calls
}

func ExampleClosest() {
	endpoints := []*balance.Endpoint{
		endpoint(1, registry.Instance{ID: "Singapore", Latitude: 1.35, Longitude: 103.82}),
		endpoint(2, registry.Instance{ID: "Zurich", Latitude: 47.38, Longitude: 8.54}),
		endpoint(3, registry.Instance{ID: "Vienna", Latitude: 48.21, Longitude: 16.37}),
	}
	picker := balance.Closest(balance.Here{Latitude: 48.14, Longitude: 11.58, Full: 1}).Build(endpoints)
	for range endpoints {
		nearest := picker.Pick(nil)
		nearest.Begin() // with one attempt it is busy
		fmt.Println(nearest.Instance().ID)
	}
	// Output:
	// Zurich
	// Vienna
	// Singapore
}

func ExampleByName() {
	b, err := balance.ByName("maglev", balance.Here{})
	fmt.Println(b.Name(), err)
	_, err = balance.ByName("magleve", balance.Here{})
	fmt.Println(err)
	// Output:
	// maglev <nil>
	// unknown balancer "magleve": want one of random, round_robin, weighted, least_active, p2c, ping, consistent_hash, maglev, sticky, local_first, closest
}

// cheapest is an application's balancer: it picks by the price of an instance, and avoids
// instances without one.
type cheapest struct{}

func (cheapest) Name() string { return "cheapest" }

func (cheapest) Build(endpoints []*balance.Endpoint) balance.Picker { return pickCheapest(endpoints) }

type pickCheapest []*balance.Endpoint

func (p pickCheapest) Pick(r *balance.Request) *balance.Endpoint {
	var best *balance.Endpoint
	for _, e := range p {
		switch {
		case best == nil, r.HasTried(best) && !r.HasTried(e):
			best = e
		case r.HasTried(e):
		case e.Instance().Tags["price"] < best.Instance().Tags["price"]:
			best = e
		}
	}
	return best
}

func ExampleBalancer() {
	picker := cheapest{}.Build([]*balance.Endpoint{
		endpoint(1, registry.Instance{Tags: map[string]string{"price": "0.31"}}),
		endpoint(2, registry.Instance{Tags: map[string]string{"price": "0.12"}}),
	})
	fmt.Println(picker.Pick(nil).Instance().Address)
	// Output: 10.0.0.2:8972
}

// Latencies are those of the calls: no extra requests are sent to measure them.
func ExamplePing() {
	near, far := endpoint(1, registry.Instance{}), endpoint(2, registry.Instance{})
	near.Observe(0, 10*time.Millisecond)
	far.Observe(0, 90*time.Millisecond)
	picker := balance.Ping().Build([]*balance.Endpoint{near, far})
	calls := 0
	for range 10_000 {
		if picker.Pick(nil) == far {
			calls++
		}
	}
	fmt.Printf("%.0f of 10 calls go to the one that takes nine times as long\n", float64(calls)/1000)
	// Output: 1 of 10 calls go to the one that takes nine times as long
}
