// Package balancetest is the conformance suite for every balance.Balancer, those of package
// balance and of applications.
package balancetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// Run tests the contracts of balance.Balancer and balance.Picker, each part on a new Balancer.
func Run(t *testing.T, fresh func() balance.Balancer) {
	t.Run("name", func(t *testing.T) { testName(t, fresh()) })
	t.Run("empty list", func(t *testing.T) { testEmpty(t, fresh()) })
	t.Run("picks from the list", func(t *testing.T) { testMember(t, fresh()) })
	t.Run("passes over the tried", func(t *testing.T) { testTried(t, fresh()) })
	t.Run("all tried", func(t *testing.T) { testAllTried(t, fresh()) })
	t.Run("keeps the list as it is", func(t *testing.T) { testUnchanged(t, fresh()) })
	t.Run("concurrent picks", func(t *testing.T) { testConcurrent(t, fresh()) })
	t.Run("allocates nothing", func(t *testing.T) { testAllocations(t, fresh()) })
}

// weightSets are weights that are difficult for balancers: one, equal, very different, many.
var weightSets = [][]int{
	{0},
	{1},
	{0, 0},
	{1, registry.MaxWeight},
	{registry.MaxWeight, 1},
	{5, 1, 1},
	{100, 0, 100},
	{1, 2, 3, 4, 5, 6, 7},
	{registry.MaxWeight, 999_983, 1, 1, 1, 1},
	slices.Repeat([]int{100}, 17),
	slices.Repeat([]int{100, 300}, 50),
	slices.Repeat([]int{1, 1000}, 100),
}

// endpoints returns one endpoint per weight, in different places. Every third one has no latency
// sample, as after a change of the list, and some are not warm.
func endpoints(weights []int) []*balance.Endpoint {
	list := make([]*balance.Endpoint, len(weights))
	for i, w := range weights {
		list[i] = balance.NewEndpoint(registry.Instance{
			Service: "balancetest", Address: fmt.Sprintf("10.0.%d.%d:80", i/256, i%256), Weight: w,
			Zone: fmt.Sprint("zone-", i%4), Latitude: float64(i % 90), Longitude: float64(i % 7),
		})
		if i%5 == 4 {
			list[i].SetWarmth(10 * (1 + i%10))
		}
		if i%3 != 2 {
			list[i].Observe(int64(i)*int64(time.Second), time.Duration(i+1)*time.Millisecond)
		}
	}
	return list
}

func testName(t *testing.T, b balance.Balancer) {
	name := b.Name()
	if name == "" {
		t.Fatal("the name is empty")
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			t.Fatalf("the name %q has the character %q: want lower case, digits, _ and -", name, r)
		}
	}
}

func testEmpty(t *testing.T, b balance.Balancer) {
	for _, list := range [][]*balance.Endpoint{nil, {}} {
		if e := b.Build(list).Pick(new(balance.Request)); e != nil {
			t.Fatalf("picked %v from no endpoints", e.Instance().Address)
		}
	}
}

func testMember(t *testing.T, b balance.Balancer) {
	for _, weights := range weightSets {
		list := endpoints(weights)
		picker := b.Build(list)
		for i := range 200 {
			request := &balance.Request{Method: fmt.Sprint("Method", i), Key: uint64(i / 2), Payload: make([]byte, i%3)}
			e := picker.Pick(request)
			if !slices.Contains(list, e) {
				t.Fatalf("weights %v: picked %v, which is not in the list", weights, e)
			}
		}
	}
}

func testTried(t *testing.T, b balance.Balancer) {
	for _, weights := range weightSets {
		list := endpoints(weights)
		picker := b.Build(list)
		for first := range min(len(list), 20) {
			request := &balance.Request{Method: "Method"}
			for k := range min(len(list)-1, 5) {
				request.Tried = append(request.Tried, list[(first+k)%len(list)])
				for range 30 {
					if e := picker.Pick(request); e == nil || slices.Contains(request.Tried, e) {
						t.Fatalf("weights %v, tried %d from index %d: picked a tried one, or nothing, "+
							"though untried ones are left", weights, k+1, first)
					}
				}
			}
		}
	}
}

func testAllTried(t *testing.T, b balance.Balancer) {
	for _, weights := range weightSets {
		list := endpoints(weights)
		if len(list) > 5 {
			continue
		}
		picker := b.Build(list)
		for range 30 {
			if e := picker.Pick(&balance.Request{Tried: list}); !slices.Contains(list, e) {
				t.Fatalf("weights %v: picked %v when all were tried: want any of them", weights, e)
			}
		}
	}
}

func testUnchanged(t *testing.T, b balance.Balancer) {
	for _, weights := range weightSets {
		list := endpoints(weights)
		before := slices.Clone(list)
		request := &balance.Request{Method: "Method", Tried: []*balance.Endpoint{list[0]}}
		picker := b.Build(list)
		for range 100 {
			picker.Pick(request)
		}
		if !slices.Equal(list, before) || len(request.Tried) != 1 || request.Tried[0] != list[0] {
			t.Fatalf("weights %v: the list or the request was changed", weights)
		}
	}
}

// testConcurrent picks and counts attempts while new pickers are built with other weights, as a
// client does; the race detector checks it.
func testConcurrent(t *testing.T, b balance.Balancer) {
	list := endpoints(slices.Repeat([]int{100, 50, 1}, 7))
	picker := b.Build(list)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			now := int64(g)
			for i := range 2000 {
				request := &balance.Request{Method: "Method", Key: uint64(i % 10)}
				for range 1 + i%3 {
					e := picker.Pick(request)
					e.Begin()
					now += int64(i%5) * int64(time.Millisecond)
					switch i % 7 {
					case 0:
						e.Abort()
					case 1:
						e.Fail(now)
					default:
						e.End(now, time.Duration(1+i%13)*time.Millisecond)
					}
					request.Tried = append(request.Tried, e)
				}
			}
		})
	}
	for i := range 60 {
		in := *list[i%len(list)].Instance()
		in.Weight = 1 + i
		list[i%len(list)].SetInstance(in)
		b.Build(list).Pick(nil)
	}
	wg.Wait()
	for i, e := range list {
		if n := e.Active(); n != 0 {
			t.Fatalf("endpoint %d has %d attempts in flight at the end: the picker must not count them", i, n)
		}
	}
}

func testAllocations(t *testing.T, b balance.Balancer) {
	for _, weights := range weightSets {
		list := endpoints(weights)
		picker := b.Build(list)
		requests := []*balance.Request{
			{Method: "Method"},
			{Method: "Method", Key: balance.Hash("key"), Payload: []byte("payload")},
			{Method: "Method", Payload: make([]byte, 1000)},
			{Method: "Method", Tried: list[:1]},
			{Method: "Method", Tried: list[:min(len(list), 5)]},
		}
		for _, request := range requests {
			if n := testing.AllocsPerRun(100, func() { picker.Pick(request) }); n != 0 {
				t.Fatalf("weights %v, %d tried: a pick allocates %v times: want 0", weights, len(request.Tried), n)
			}
		}
	}
}
