package cluster

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// chosen returns the subset of the keys that a process with the seed uses.
func chosen(seed uint64, keys []string, size int) []string {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b string) int {
		if rankFor(seed, a) < rankFor(seed, b) {
			return -1
		}
		return 1
	})
	return keys[:min(size, len(keys))]
}

func addressesOf(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("10.0.%d.%d:8972", i/250, i%250))
	}
	return keys
}

// When some instances go and others come, at most as many members change as instances did. The
// order in which the registry lists them does not matter.
func TestSubsetChurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		n := rapid.IntRange(100, 400).Draw(t, "instances")
		size := rapid.IntRange(2, 64).Draw(t, "size")
		go_ := rapid.IntRange(0, 20).Draw(t, "that go")
		come := rapid.IntRange(0, 20).Draw(t, "that come")
		all := addressesOf(n + come)
		rand.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		before, after := chosen(seed, all[:n], size), chosen(seed, all[go_:], size)
		if len(after) != size {
			t.Fatalf("%d members: want %d", len(after), size)
		}
		left := 0
		for _, key := range before {
			if !slices.Contains(after, key) {
				left++
			}
		}
		if left > go_+come {
			t.Fatalf("%d instances went, %d came, and %d of %d members changed", go_, come, left, size)
		}
		gone := 0
		for _, key := range all[:go_] {
			if slices.Contains(before, key) {
				gone++
			}
		}
		if come == 0 && left != gone {
			t.Fatalf("%d members went with their instances, and %d left the subset", gone, left)
		}
		rand.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		if again := chosen(seed, all[:n], size); !slices.Equal(again, before) {
			t.Fatalf("in another order the subset is %v, was %v", again, before)
		}
	})
}

// The number of clients per instance follows a binomial distribution, as if each client had drawn
// its subset at random: with 1,000 clients that use 32 of 200 instances it is 160 on average, and
// no instance deviates from that by five standard deviations.
func TestSubsetSpread(t *testing.T) {
	const clients, instances, size = 1000, 200, 32
	keys := addressesOf(instances)
	source := rand.New(rand.NewPCG(1, 2))
	got := make(map[string]int)
	for range clients {
		for _, key := range chosen(source.Uint64(), keys, size) {
			got[key]++
		}
	}
	const p = float64(size) / instances
	mean, deviation := clients*p, math.Sqrt(clients*p*(1-p))
	square := 0.0
	for _, key := range keys {
		d := float64(got[key]) - mean
		square += d * d / instances
		if math.Abs(d) > 5*deviation {
			t.Errorf("%s has %d clients: want %.0f ± %.0f", key, got[key], mean, 5*deviation)
		}
	}
	if s := math.Sqrt(square); s > 1.3*deviation {
		t.Errorf("the standard deviation is %.1f: want about %.1f", s, deviation)
	}
}

// Neighbouring seeds choose independently.
func TestSubsetSeeds(t *testing.T) {
	keys := addressesOf(1000)
	common := 0
	for seed := range uint64(100) {
		a, b := chosen(seed+1, keys, 32), chosen(seed+2, keys, 32)
		for _, key := range a {
			if slices.Contains(b, key) {
				common++
			}
		}
	}
	if common > 200 { // 102 are expected of 3,200
		t.Errorf("neighbours have %d of 3,200 members in common", common)
	}
}
