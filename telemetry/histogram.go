package telemetry

import (
	"iter"
	"math"
	"time"
)

// Scale is the resolution of every [Histogram]: the upper bound of a bucket is 2^(1/8) times the
// one before, so that a quantile is off by at most 9 %. Exponential histograms of OpenTelemetry
// with the scale 3 and native histograms of Prometheus with the schema 3 have the same buckets.
const Scale = 3

const (
	perOctave  = 1 << Scale
	firstIndex = -27 * perOctave // buckets begin at 2^-27 s, which is 7 ns
	lastIndex  = 11*perOctave - 1
	buckets    = lastIndex - firstIndex + 1
)

// cells divide an octave into equal parts that are so small that each has at most one lower bound
// of a bucket.
var cells = func() (all [cellsPerOctave]cell) {
	bound := func(i int) uint64 { // the mantissa of a number from 1 to 2
		return math.Float64bits(math.Exp2(float64(i)/perOctave)) & mantissaMask
	}
	i := 0
	for at := range all {
		all[at] = cell{bound: mantissaMask, below: i}
		if i < perOctave && int(bound(i)>>(mantissaBits-cellBits)) == at {
			all[at].bound = bound(i)
			i++
		}
	}
	return all
}()

const (
	cellBits       = 4
	cellsPerOctave = 1 << cellBits
	mantissaBits   = 52
	mantissaMask   = 1<<mantissaBits - 1
)

type cell struct {
	bound uint64 // the mantissa of the bound in the cell; mantissaMask: it has none
	below int    // number of bounds in the cells before
}

// indexOf returns the index of the bucket of a duration: 2^(i/8) s < d <= 2^((i+1)/8) s.
func indexOf(d time.Duration) int {
	if d <= 0 {
		return firstIndex
	}
	bits := math.Float64bits(float64(d) * 1e-9)
	mantissa := bits & mantissaMask
	c := &cells[mantissa>>(mantissaBits-cellBits)]
	above := int((c.bound - mantissa) >> 63) // 1 if the mantissa is above the bound; without a branch
	return min(max((int(bits>>mantissaBits)-1023)*perOctave+c.below+above-1, firstIndex), lastIndex)
}

// Histogram is a snapshot of a distribution of durations.
type Histogram struct {
	Count uint64
	Sum   time.Duration
	// Counts are the numbers of durations in the buckets First, First + 1, and so on. A duration d
	// is in the bucket i if 2^(i/8) s < d <= 2^((i+1)/8) s. Counts neither begins nor ends with 0.
	First  int
	Counts []uint64
}

// Bound returns the upper bound of the bucket i.
func Bound(i int) time.Duration {
	return time.Duration(math.Exp2(float64(i+1)/perOctave) * 1e9)
}

// All returns the buckets that are not empty, by index.
func (h *Histogram) All() iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		for i, n := range h.Counts {
			if n != 0 && !yield(h.First+i, n) {
				return
			}
		}
	}
}

// Quantile returns a bound below which the fraction q of the durations lies, from 0 to 1. It is 0
// without durations.
func (h *Histogram) Quantile(q float64) time.Duration {
	var total uint64
	for _, n := range h.Counts {
		total += n
	}
	if total == 0 {
		return 0
	}
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(total)))
	var seen uint64
	for i, n := range h.All() {
		if seen += n; seen >= max(rank, 1) {
			return Bound(i)
		}
	}
	return 0
}

// Mean returns the average, or 0 without durations.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return h.Sum / time.Duration(h.Count)
}

// Add adds the durations of o.
func (h *Histogram) Add(o *Histogram) { h.combine(o, func(a, b uint64) uint64 { return a + b }, 1) }

// Sub removes the durations of o, an earlier snapshot of the same histogram.
func (h *Histogram) Sub(o *Histogram) {
	h.combine(o, func(a, b uint64) uint64 { return a - min(a, b) }, -1)
}

func (h *Histogram) combine(o *Histogram, f func(a, b uint64) uint64, sign time.Duration) {
	h.Count = f(h.Count, o.Count)
	h.Sum = max(h.Sum+sign*o.Sum, 0)
	if len(o.Counts) == 0 {
		return
	}
	// Only the buckets that either of them has: histograms are added by the thousand.
	first, last := o.span()
	if len(h.Counts) > 0 {
		a, b := h.span()
		first, last = min(first, a), max(last, b)
	}
	var room [64]uint64
	var all []uint64
	if n := last - first + 1; n <= len(room) {
		all = room[:n]
	} else {
		all = make([]uint64, n)
	}
	for i, n := range h.Counts {
		all[h.place(i)-first] += n
	}
	for i, n := range o.Counts {
		at := o.place(i) - first
		all[at] = f(all[at], n)
	}
	h.set(all, first)
}

// span returns the places of the first and of the last bucket.
func (h *Histogram) span() (first, last int) { return h.place(0), h.place(len(h.Counts) - 1) }

// place returns where Counts[i] is among all buckets. A histogram that another process has sent may
// have any index.
func (h *Histogram) place(i int) int {
	return min(max(min(h.First, lastIndex)+i, firstIndex), lastIndex) - firstIndex
}

// set stores counts, of which the first is that of the bucket at a place.
func (h *Histogram) set(all []uint64, at int) {
	first, last := 0, len(all)
	for first < last && all[first] == 0 {
		first++
	}
	for last > first && all[last-1] == 0 {
		last--
	}
	h.First, h.Counts = 0, nil
	if first < last {
		h.First, h.Counts = at+first+firstIndex, append([]uint64(nil), all[first:last]...)
	}
}
