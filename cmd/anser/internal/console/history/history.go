// Package history keeps an hour of figures in memory: seconds for five minutes, and steps of ten
// seconds for an hour.
package history

import (
	"math"
	"sync"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/telemetry"
)

const (
	// Fine and Coarse are the steps, and FineSpan and Span how long they are kept.
	Fine     = time.Second
	Coarse   = 10 * time.Second
	FineSpan = 5 * time.Minute
	Span     = time.Hour

	fineCount   = int64(FineSpan / Fine)
	coarseCount = int64(Span / Coarse)
	perCoarse   = int64(Coarse / Fine)

	// MaxSeries is the number of series, of which one takes 14 KB, and 60 KB more with a heat map.
	MaxSeries = 6000
	// maxPoints limits an answer.
	maxPoints = 2000
)

// Key names a series.
type Key struct {
	Kind string // one of the constants
	A, B string // service and method, or service and instance, or from and to
}

// Kinds of series.
const (
	OfService  = "service"
	OfMethod   = "method"
	OfInstance = "instance"
	OfEdge     = "edge"
)

// hot reports whether a series has a heat map.
func (k Key) hot() bool { return k.Kind == OfService || k.Kind == OfMethod }

// History is an hour of figures. Its methods are safe for concurrent use. Times are those of the
// monotonic clock, so a clock that is set neither tears a hole nor overwrites what is known.
type History struct {
	began time.Time

	mu     sync.Mutex // guards the fields below
	series map[Key]*series
}

// New returns an empty history.
func New() *History { return &History{began: time.Now(), series: make(map[Key]*series)} }

// second returns the place of a time: seconds since the history began.
func (h *History) second(t time.Time) int64 { return int64(math.Round(t.Sub(h.began).Seconds())) }

// point is what is known about a step.
type point struct {
	known         bool
	rate, failed  float32
	p50, p90, p99 float32 // seconds
}

// heat counts calls by their durations.
type heat [heatBounds]uint32

const (
	heatFirst  = -15 // the first bound is 2^-15 s, 31 µs
	heatLast   = 6   // the last one is 64 s
	heatBounds = heatLast - heatFirst + 1
)

type ring struct {
	points []point
	heats  []heat
	at     []int64 // the step of each place, since places are used again
}

type series struct {
	fine, coarse ring
	slot         int64 // of the coarse step that is added up
	sum          collect.Calls
	rounds       int // of the slot
	last         int64
}

// Add adds the calls of a round, whose time is that of the round and whose step is the time since
// the one before; a step of 0 is ignored. A step has its figures in each of its seconds, and in
// each ten of them, of which nothing else is known: so the last minutes have no gaps when a viewer
// comes. Calls of a window that is longer than the step are counted in part in the heat map.
func (h *History) Add(key Key, round time.Time, step time.Duration, c *collect.Calls) {
	if step <= 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.series[key]
	at := h.second(round)
	if s == nil {
		if len(h.series) >= MaxSeries && !h.dropLocked(at) {
			return
		}
		s = &series{slot: at / perCoarse}
		h.series[key] = s
	}
	s.last = at
	share := 1.0
	if c.Window > step {
		share = float64(step) / float64(c.Window)
	}
	s.fine.set(at, fineCount, key.hot(), c, 1, share)
	n := min(int64((step+3*Fine/4)/Fine), fineCount) // rounds every 2.5 s are 2 or 3 seconds from each other
	for back := int64(1); back < n && at >= back; back++ {
		s.fine.repeat(at, at-back, fineCount, n-back+1)
	}
	if slot := at / perCoarse; slot != s.slot {
		s.slot, s.sum, s.rounds = slot, collect.Calls{}, 0
	}
	s.sum.Add(c)
	s.rounds++
	s.coarse.set(s.slot, coarseCount, key.hot(), &s.sum, s.rounds, share)
	for back := int64(1); back < int64(step/Coarse) && s.slot >= back; back++ {
		s.coarse.repeat(s.slot, s.slot-back, coarseCount, 0) // the sum of the step may be stored again
	}
}

// dropLocked makes room: it drops the series that was added to least recently, if that is over.
func (h *History) dropLocked(now int64) bool {
	var oldest Key
	last := now - perCoarse
	for key, s := range h.series {
		if s.last < last {
			oldest, last = key, s.last
		}
	}
	if h.series[oldest] == nil {
		return false
	}
	delete(h.series, oldest)
	return true
}

// Prune drops series that have nothing within the span any more.
func (h *History) Prune(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, s := range h.series {
		if s.last < h.second(now)-int64(Span/Fine) {
			delete(h.series, key)
		}
	}
}

// Len returns the number of series.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.series)
}

// repeat stores what is known about a step for an earlier one, of which nothing is known. One of n
// parts of the calls moves to it, so that they are counted once; 0 means none.
func (r *ring) repeat(step, earlier, count, n int64) {
	i := earlier % count
	if r.at[i] == earlier {
		return
	}
	r.at[i], r.points[i] = earlier, r.points[step%count]
	if r.heats == nil {
		return
	}
	if r.heats[i] = (heat{}); n == 0 {
		return
	}
	all := &r.heats[step%count]
	for j, calls := range all {
		part := uint32(int64(calls) / n)
		r.heats[i][j] = part
		all[j] -= part
	}
}

// set stores the calls of a step; rates are averages over n rounds, and share of the calls are
// counted.
func (r *ring) set(step, count int64, hot bool, c *collect.Calls, n int, share float64) {
	if r.points == nil {
		r.points, r.at = make([]point, count), make([]int64, count)
		for i := range r.at {
			r.at[i] = -1
		}
		if hot {
			r.heats = make([]heat, count)
		}
	}
	i := step % count
	r.at[i] = step
	seconds := func(d time.Duration) float32 { return float32(d.Seconds()) }
	r.points[i] = point{
		true, float32(c.Rate / float64(n)), float32(c.Failed / float64(n)),
		seconds(c.Times.Quantile(0.5)), seconds(c.Times.Quantile(0.9)), seconds(c.Times.Quantile(0.99)),
	}
	if hot {
		r.heats[i] = heatOf(&c.Times, share)
	}
}

func heatOf(times *telemetry.Histogram, share float64) (out heat) {
	for i, n := range times.All() {
		octave := (i + 8) >> telemetry.Scale // the bucket ends at 2^((i+1)/8) s
		at := min(max(octave-heatFirst, 0), heatBounds-1)
		out[at] = uint32(min(float64(out[at])+math.Ceil(float64(n)*share), math.MaxUint32))
	}
	return out
}

// get returns what is known about a step.
func (r *ring) get(step, count int64) (point, *heat) {
	if r.points == nil || step < 0 {
		return point{}, nil
	}
	i := step % count
	if r.at[i] != step {
		return point{}, nil
	}
	if r.heats == nil {
		return r.points[i], nil
	}
	return r.points[i], &r.heats[i]
}

// Range is a range of time.
type Range struct {
	From, To time.Time // of the wall clock; zero: the last five minutes
	Step     time.Duration
}

// grid is a range in steps of one of the rings.
type grid struct {
	first, count int64 // steps of the answer
	unit         int64 // seconds of a step of the ring
	every        int64 // steps of the ring in one of the answer
	from         time.Time
	step         time.Duration
}

// gridOf returns the steps of a range. Clocks that were set move the whole history.
func (h *History) gridOf(r Range, now time.Time) grid {
	if r.To.IsZero() || r.To.After(now) {
		r.To = now
	}
	if r.From.IsZero() {
		r.From = r.To.Add(-FineSpan)
	}
	// What is asked for beyond what is kept would be looked for under the lock.
	r.Step = min(r.Step, Span)
	oldest := now.Add(-Span)
	if r.From.Before(oldest) {
		r.From = oldest
	}
	if r.To.Before(oldest) {
		r.To = oldest
	}
	if r.From.After(r.To) {
		r.From = r.To
	}
	g := grid{unit: 1}
	if r.Step >= Coarse || now.Sub(r.From) > FineSpan+Fine {
		g.unit = perCoarse
	}
	step := max(int64(r.Step/time.Second), g.unit)
	g.every = max(step/g.unit, 1)
	of := func(t time.Time) int64 { return h.second(now) - int64(math.Round(now.Sub(t).Seconds())) }
	for {
		size := g.unit * g.every
		g.first = floor(of(r.From), size)
		g.count = floor(of(r.To), size) - g.first + 1
		if g.count <= maxPoints {
			break
		}
		g.every *= 2
	}
	g.step = time.Duration(g.unit*g.every) * time.Second
	g.from = now.Add(time.Duration(g.first*g.unit*g.every-h.second(now)) * time.Second).UTC().Truncate(time.Second)
	return g
}

// floor divides and rounds down.
func floor(a, b int64) int64 {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}

// each calls f for each step of the answer with the steps of the ring that it covers.
func (h *History) each(key Key, g grid, f func(i int, p point, t *heat)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.series[key]
	if s == nil {
		return
	}
	r, count := &s.fine, fineCount
	if g.unit == perCoarse {
		r, count = &s.coarse, coarseCount
	}
	for i := range g.count {
		for j := range g.every {
			if p, t := r.get((g.first+i)*g.every+j, count); p.known {
				f(int(i), p, t)
			}
		}
	}
}

// Series returns a series. A step of several ones of the ring has the averages of their rates and
// the largest of their percentiles.
func (h *History) Series(key Key, r Range) *model.Series {
	g := h.gridOf(r, time.Now())
	out := &model.Series{
		From: g.from, Step: g.step, Source: model.OfConsole, Rate: make([]*float64, g.count), Failed: make([]*float64, g.count),
		P50: make([]*time.Duration, g.count), P90: make([]*time.Duration, g.count), P99: make([]*time.Duration, g.count),
	}
	seen := make([]float64, g.count)
	h.each(key, g, func(i int, p point, _ *heat) {
		if seen[i]++; out.Rate[i] == nil {
			out.Rate[i], out.Failed[i] = new(float64), new(float64)
		}
		*out.Rate[i] += (float64(p.rate) - *out.Rate[i]) / seen[i]
		*out.Failed[i] += (float64(p.failed) - *out.Failed[i]) / seen[i]
		for _, q := range []struct {
			to   **time.Duration
			took float32
		}{{&out.P50[i], p.p50}, {&out.P90[i], p.p90}, {&out.P99[i], p.p99}} {
			if d := time.Duration(float64(q.took) * 1e9); d > 0 && (*q.to == nil || **q.to < d) {
				*q.to = &d
			}
		}
	})
	return out
}

// Heat returns the heat map of a series of a service or method.
func (h *History) Heat(key Key, r Range) *model.Heat {
	g := h.gridOf(r, time.Now())
	out := &model.Heat{From: g.from, Step: g.step, Counts: make([][]uint64, g.count)}
	for k := heatFirst; k <= heatLast; k++ {
		out.Bounds = append(out.Bounds, time.Duration(math.Exp2(float64(k))*1e9))
	}
	h.each(key, g, func(i int, _ point, t *heat) {
		if t == nil {
			return
		}
		if out.Counts[i] == nil {
			out.Counts[i] = make([]uint64, heatBounds)
		}
		for j, n := range t {
			out.Counts[i][j] += uint64(n)
		}
	})
	return out
}
