package main

import (
	"slices"
	"testing"
	"time"
)

// result is what was measured of a codec.
type result struct {
	ns     float64 // median of the rounds
	ratio  float64 // median of its time by that of the first codec in the same round
	allocs int
}

// measure lets the codecs take turns, so that a slow moment of the machine does not hit one of
// them only.
func measure(subjects []subject, rounds int, each time.Duration) []result {
	results := make([]result, len(subjects))
	counts := make([]int, len(subjects))
	for i, s := range subjects {
		counts[i] = calibrate(s, each)
		results[i].allocs = int(testing.AllocsPerRun(100, s.run))
	}
	times := make([][]float64, len(subjects))
	ratios := make([][]float64, len(subjects))
	for range rounds {
		for i, s := range subjects {
			ns := float64(repeat(s, counts[i])) / float64(counts[i])
			times[i] = append(times[i], ns)
			ratios[i] = append(ratios[i], ns/times[0][len(times[0])-1])
		}
	}
	for i := range subjects {
		results[i].ns, results[i].ratio = median(times[i]), median(ratios[i])
	}
	return results
}

// calibrate returns how often a codec runs in this time.
func calibrate(s subject, each time.Duration) int {
	for n := 1; ; n *= 2 {
		if took := repeat(s, n); took >= each/4 {
			return max(1, int(float64(n)*float64(each)/float64(took)))
		}
	}
}

func repeat(s subject, n int) time.Duration {
	start := time.Now()
	for range n {
		s.run()
	}
	return time.Since(start)
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
