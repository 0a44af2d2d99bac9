package stat_test

import (
	"slices"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/stat"
)

func TestMedianAndRange(t *testing.T) {
	for _, c := range []struct {
		values []float64
		median float64
		spread [2]float64
	}{
		{nil, 0, [2]float64{}},
		{[]float64{7}, 7, [2]float64{7, 7}},
		{[]float64{9, 1}, 5, [2]float64{1, 9}},
		{[]float64{9, 1, 2}, 2, [2]float64{1, 9}},
		{[]float64{4, 3, 9, 1}, 3.5, [2]float64{1, 9}},
	} {
		before := slices.Clone(c.values)
		if m, r := stat.Median(c.values), stat.Range(c.values); m != c.median || r != c.spread {
			t.Errorf("of %v: %v and %v", c.values, m, r)
		}
		if !slices.Equal(before, c.values) {
			t.Errorf("%v became %v", before, c.values)
		}
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b [2]float64
		want bool
	}{
		{[2]float64{1, 2}, [2]float64{3, 4}, false},
		{[2]float64{3, 4}, [2]float64{1, 2}, false},
		{[2]float64{1, 3}, [2]float64{3, 4}, true},
		{[2]float64{1, 9}, [2]float64{3, 4}, true},
		{[2]float64{2, 2}, [2]float64{2, 2}, true},
	} {
		if got := stat.Overlap(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %v", c.a, c.b, got)
		}
	}
}
