package anser_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// steered returns the option that makes r the router of a client.
func steered(r *testRouter) anser.DialOption {
	return anser.WithRouter(func(s *anser.RouterContext) (anser.Router, error) {
		s.Report(anser.RulesStatus{Version: 1})
		return r, nil
	})
}

// Within a route, a breaker keeps calls away from its instance, and no call goes outside the route.
// A route whose only instance has an open breaker still uses it where the filter is strict. Probes
// stay within the route.
func TestBreakerWithinAPart(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		r := new(testRouter)
		w := newWard(t, network, 4, steered(r), anser.Breaker{Calls: 20, Window: 10 * time.Second})
		two := &anser.Route{Name: "two", Filters: []anser.Filter{at("a:1", "b:1")}}
		alone := &anser.Route{Name: "alone", Filters: []anser.Filter{{Name: "a", Strict: true, Keep: func(in *registry.Instance) bool { return in.Address == "a:1" }}}}
		others := &anser.Route{Name: "others", Filters: []anser.Filter{at("c:1", "d:1")}}
		r.subset.Store(two)
		w.who["a:1"].gets(broken)
		w.call(workMethod, 60)
		time.Sleep(time.Second)
		if got := w.took(); !slices.Equal(got, []anser.HealthChange{anser.BreakerOpened}) {
			t.Fatal(got)
		}
		w.reset()
		if failed := w.call(workMethod, 20); failed != 0 || w.who["a:1"].calls.Load() != 0 || w.who["b:1"].calls.Load() != 20 {
			t.Errorf("%d of 20 failed, a got %d and b %d", failed, w.who["a:1"].calls.Load(), w.who["b:1"].calls.Load())
		}
		r.subset.Store(alone)
		w.reset()
		if failed := w.call(workMethod, 5); failed != 5 || w.who["a:1"].calls.Load() != 5 {
			t.Errorf("of 5 calls that may go to a alone %d failed and %d went there", failed, w.who["a:1"].calls.Load())
		}
		r.subset.Store(others)
		w.who["a:1"].gets(nil)
		w.reset()
		for range 100 { // the breaker is half open now and then
			w.call(workMethod, 4)
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.who["a:1"].calls.Load() + w.who["b:1"].calls.Load(); n != 0 {
			t.Errorf("%d calls went to instances outside of their part", n)
		}
		r.subset.Store(two)
		for range 200 {
			w.call(workMethod, 4)
			time.Sleep(100 * time.Millisecond)
		}
		if got := w.took(); got[len(got)-1] != anser.BreakerClosed {
			t.Errorf("%v: the breaker does not close by the calls of its part", got)
		}
	})
}

// Routes select from all instances, not from the client's subset, and are reduced to a subset
// themselves if they are large.
func TestPartsOfALargeService(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		list := many(120)
		for i, in := range list {
			serve(t, network.Listen(in.Address), hello(in.Address))
			list[i].Version = "1"
			if i < 2 {
				list[i].Version = "2"
			}
		}
		version := func(v string) *anser.Route {
			return &anser.Route{Name: v, Filters: []anser.Filter{{Name: v, Keep: func(in *registry.Instance) bool { return in.Version == v }}}}
		}
		r := new(testRouter)
		f := newFeed()
		c := dial(t, "fed://arith", f.scheme(), anser.Dialer(network.Dial), steered(r), anser.Balancer(balance.RoundRobin()), anser.Subset(100, 8))
		f.instances(list...)
		who := func(part *anser.Route) map[string]int {
			t.Helper()
			r.subset.Store(part)
			got := make(map[string]int)
			for range 200 {
				name, err := call(context.Background(), c, "Echo.Who", "")
				if err != nil {
					t.Fatal(err)
				}
				got[name]++
			}
			return got
		}
		if got := who(nil); len(got) != 8 {
			t.Errorf("%d instances answered without a part, want a subset of 8", len(got))
		}
		if got := who(version("2")); len(got) != 2 || got[list[0].Address] == 0 || got[list[1].Address] == 0 {
			t.Errorf("%v answered, want the two of version 2", got)
		}
		got := who(version("1"))
		if len(got) != 8 || got[list[0].Address] > 0 || got[list[1].Address] > 0 {
			t.Errorf("%v answered, want 8 of version 1", got)
		}
		if again := who(version("1")); fmt.Sprint(keys(again)) != fmt.Sprint(keys(got)) {
			t.Errorf("%v answered, and %v before: want the same", keys(again), keys(got))
		}
	})
}

func keys(m map[string]int) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
