package proc_test

import (
	"testing"

	"github.com/anser-rpc/anser/arena/internal/proc"
)

func TestSeries(t *testing.T) {
	var s proc.Series
	if _, ok := s.Between(0, 0); ok {
		t.Error("an empty series knows something")
	}
	for at, value := range []float64{10, 20, 60, 60, 160} {
		s.Add(int64(100+10*at), value) // 100 … 140
	}
	for _, c := range []struct {
		from, to int64
		want     float64
		ok       bool
	}{
		{100, 140, 150, true},
		{100, 100, 0, true},
		{105, 115, 25, true}, // 15 to 40
		{110, 131, 50, true}, // 20 to 70
		{125, 130, 0, true},
		{99, 110, 0, false},
		{130, 141, 0, false},
		{120, 110, 0, false},
	} {
		if got, ok := s.Between(c.from, c.to); ok != c.ok || ok && got != c.want {
			t.Errorf("from %d to %d: %v, %v", c.from, c.to, got, ok)
		}
	}
}

func TestSeriesMax(t *testing.T) {
	var s proc.Series
	if got := s.Max(0, 10); got != 0 {
		t.Errorf("the most of nothing is %v", got)
	}
	for at, value := range []float64{90, 10, 20, 30, 80} {
		s.Add(int64(10*at), value) // 0 … 40
	}
	for _, c := range []struct {
		from, to int64
		want     float64
	}{{0, 40, 90}, {10, 30, 30}, {11, 19, 20}, {12, 21, 30}, {35, 36, 80}, {41, 50, 80}, {-5, -1, 90}} {
		if got := s.Max(c.from, c.to); got != c.want {
			t.Errorf("from %d to %d: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}
