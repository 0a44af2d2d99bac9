package balance_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/balance"
)

func TestRoundRobinVisitsEachInTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 50).Draw(t, "weights")
		list := endpointsWith(weights...)
		picker := balance.RoundRobin().Build(list)
		for range 3 {
			for i, n := range picks(picker, list, len(list)) {
				if n != 1 {
					t.Fatalf("endpoint %d was picked %d times in a round: want once", i, n)
				}
			}
		}
	})
}

func TestRoundRobinIsExactUnderConcurrency(t *testing.T) {
	list := endpointsWith(1, 2, 3, 4, 5, 6, 7)
	for i, n := range concurrentPicks(balance.RoundRobin().Build(list), list, 8, 7000) {
		if n != 8*1000 {
			t.Errorf("endpoint %d was picked %d times: want 8000", i, n)
		}
	}
}

func TestRoundRobinPickersBeginApart(t *testing.T) {
	list := endpointsWith(make([]int, 100)...)
	first := map[*balance.Endpoint]bool{}
	for range 100 {
		first[balance.RoundRobin().Build(list).Pick(nil)] = true
	}
	if len(first) < 20 { // 63 are expected
		t.Errorf("100 pickers begin at %d of 100 endpoints", len(first))
	}
}
