package balance_test

import (
	"sync"
	"testing"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/balance/balancetest"
)

// constructors lists all balancers of the package by name.
var constructors = []struct {
	name string
	make func() balance.Balancer
}{
	{"random", balance.Random},
	{"round_robin", balance.RoundRobin},
	{"weighted", balance.Weighted},
	{"least_active", balance.LeastActive},
	{"p2c", balance.P2C},
	{"ping", balance.Ping},
	{"consistent_hash", balance.ConsistentHash},
	{"maglev", balance.Maglev},
	{"sticky", balance.Sticky},
	{"local_first", func() balance.Balancer { return balance.LocalFirst(munich) }},
	{"closest", func() balance.Balancer { return balance.Closest(munich) }},
}

// munich is the position of the clients in tests.
var munich = balance.Here{Latitude: 48.14, Longitude: 11.58, Zone: "eu-south"}

func TestConformance(t *testing.T) {
	for _, c := range constructors {
		t.Run(c.name, func(t *testing.T) {
			if got := c.make().Name(); got != c.name {
				t.Errorf("name %q: want %q", got, c.name)
			}
			balancetest.Run(t, c.make)
		})
	}
}

func TestRequestHasTried(t *testing.T) {
	list := endpointsWith(1, 1)
	var first *balance.Request
	if first.HasTried(list[0]) || new(balance.Request).HasTried(list[0]) {
		t.Error("a first attempt has tried nothing")
	}
	r := &balance.Request{Tried: list[:1]}
	if !r.HasTried(list[0]) || r.HasTried(list[1]) {
		t.Error("want the first endpoint tried and the second not")
	}
}

// picks returns how often the picker picks each endpoint of the list in n first attempts.
func picks(picker balance.Picker, list []*balance.Endpoint, n int) []int {
	index := make(map[*balance.Endpoint]int, len(list))
	for i, e := range list {
		index[e] = i
	}
	counts := make([]int, len(list))
	for range n {
		counts[index[picker.Pick(nil)]]++
	}
	return counts
}

// concurrentPicks counts the results of each picks per goroutine.
func concurrentPicks(picker balance.Picker, list []*balance.Endpoint, goroutines, each int) []int {
	all := make([][]int, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() { all[g] = picks(picker, list, each) })
	}
	wg.Wait()
	counts := make([]int, len(list))
	for _, some := range all {
		for i, n := range some {
			counts[i] += n
		}
	}
	return counts
}

// The balancer of the example passes the suite, as an application's should.
func TestConformanceOfTheExample(t *testing.T) {
	balancetest.Run(t, func() balance.Balancer { return cheapest{} })
}
