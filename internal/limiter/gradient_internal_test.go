package limiter

import (
	"math/rand/v2"
	"testing"
)

// station is a server in a simulation: slots calls make progress at the same time, the others
// wait for them in the handler. It is offered more than it can do.
type station struct {
	slots float64
	cost  float64 // nanoseconds of a call without a queue
	noise float64 // share by which windows differ
	rand  *rand.Rand
}

// window returns the average duration of a window's calls while that number runs, and that of the
// fastest.
func (s *station) window(running float64) (average, least float64) {
	average = s.cost * max(1, running/s.slots)
	average *= 1 + s.noise*(2*s.rand.Float64()-1)
	return average, average * 0.8
}

// windows has the limit go through n windows under load, and returns the least and the greatest of
// those behind the first half. Probes do not count: there the limit is low for two windows of a
// hundred.
func (s *station) windows(g *gradient, b *baseline, n int) (low, high float64) {
	low = 1e9
	for i := range n {
		average, least := s.window(g.limit)
		if measured := g.measures(); measured {
			g.step(average/b.usual, true)
			b.fold(average, least, true, true)
		} else {
			b.fold(average, least, true, false)
			g.step(average/b.usual, true)
		}
		if i >= n/2 && g.probe == 0 {
			low, high = min(low, g.limit), max(high, g.limit)
		}
	}
	return low, high
}

func TestAdaptiveLimitFindsWhatTheServerCanDo(t *testing.T) {
	for _, slots := range []float64{1, 4, 8, 100} {
		for _, noise := range []float64{0, 0.3} {
			g := newGradient(1, 0)
			g.limit = 32
			var b baseline
			s := station{slots: slots, cost: 1e6, noise: noise, rand: rand.New(rand.NewPCG(1, uint64(slots)))}
			low, high := s.windows(&g, &b, 2000)
			if low < slots { // some would be idle
				t.Errorf("%v slots, noise %v: the limit falls to %v", slots, noise, low)
			}
			if high > 4*slots+16 {
				t.Errorf("%v slots, noise %v: the limit rises to %v", slots, noise, high)
			}
		}
	}
}

// Where nothing queues in the handler the limit must not hold calls up.
func TestAdaptiveLimitRisesWithoutAQueue(t *testing.T) {
	g := newGradient(1, 5000)
	var b baseline
	s := station{slots: 1e9, cost: 1e6, rand: rand.New(rand.NewPCG(1, 2))}
	if _, high := s.windows(&g, &b, 60); high != 5000 {
		t.Errorf("after 60 windows the limit is %v, want its bound of 5000", high)
	}
}

// A server that becomes slower for good, and one that becomes faster again.
func TestAdaptiveLimitFollows(t *testing.T) {
	g := newGradient(1, 0)
	var b baseline
	s := station{slots: 16, cost: 1e6, rand: rand.New(rand.NewPCG(1, 3))}
	s.windows(&g, &b, 500)
	s.slots = 2
	if low, high := s.windows(&g, &b, 1000); low < 2 || high > 24 {
		t.Errorf("with 2 slots of 16 left the limit is %v to %v, want 1 to 24", low, high)
	}
	s.slots = 16
	if low, _ := s.windows(&g, &b, 1000); low < 16 {
		t.Errorf("with all 16 slots again the limit falls to %v", low)
	}
	s.cost = 20e6 // the calls have become heavier
	if low, _ := s.windows(&g, &b, 1000); low < 16 {
		t.Errorf("with calls of 20 times the cost the limit falls to %v", low)
	}
}

func TestAdaptiveLimitStaysWhileItHoldsNothingBack(t *testing.T) {
	g := newGradient(1, 0)
	before := g.limit
	for range 100 {
		g.step(10, false)
	}
	if g.limit != before {
		t.Errorf("the limit went from %v to %v although no call found it in its way", before, g.limit)
	}
}
