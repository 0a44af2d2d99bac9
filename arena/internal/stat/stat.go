// Package stat has the little statistics that the arena needs.
package stat

import "slices"

// Median returns the middle value, or the mean of the two in the middle; 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Range returns the least and the most; zeros of none.
func Range(values []float64) [2]float64 {
	if len(values) == 0 {
		return [2]float64{}
	}
	return [2]float64{slices.Min(values), slices.Max(values)}
}

// Overlap reports whether two ranges have a value in common.
func Overlap(a, b [2]float64) bool { return a[0] <= b[1] && b[0] <= a[1] }
