package limiter

import (
	"math"
	"runtime"
	"time"
)

// gradient finds how many calls may run at once from how much longer they take than without a
// queue. It is the gradient algorithm of Netflix's concurrency-limits (Gradient2Limit), with three
// changes:
//
//   - It compares the average of a window, not of single calls, with the usual duration of the same
//     class. So classes of different cost can share a limit.
//   - The usual duration is not forgotten while calls queue all the time. It is measured again in a
//     probe, as in BBR (Cardwell et al., "BBR: Congestion-Based Congestion Control", 2016): for a
//     moment only half as many calls run as the server can work on. A probe also corrects what was
//     learned from a queue: the usual duration halves with each probe, and the next probe follows
//     soon.
//   - It learns only while the limit holds calls back. Before, latency says nothing about the
//     limit.
//
// It is a value without locks and clocks, so that a simulation can test it.
type gradient struct {
	least, most float64
	limit       float64
	rising      bool    // no queue was seen yet: the limit doubles
	held        int     // windows in which the limit held calls back, since the last probe
	probe       int     // windows left of a probe
	resume      float64 // the limit after the probe
}

const (
	windowTime    = 100 * time.Millisecond // of the samples of one step, and longer until there are enough
	windowSamples = 10                     // least number of samples of one step
	tolerance     = 2.0                    // ratio of durations above which the limit falls
	firstProbe    = 10                     // windows until the first probe, and until the next one after foundLess
	foundLess     = 0.8                    // ratio of durations below which a probe corrects the usual duration
	probeEvery    = 100                    // windows between probes
	probeWindows  = 2                      // length of a probe; in the first window older calls end
)

func newGradient(least, most int) gradient {
	if least == 0 {
		least = runtime.GOMAXPROCS(0)
	}
	if most == 0 {
		most = 10_000
	}
	most = max(most, least)
	first := min(max(16*runtime.GOMAXPROCS(0), least), most)
	return gradient{least: float64(least), most: float64(most), limit: float64(first), rising: true, held: probeEvery - firstProbe}
}

// places returns the limit as a number of calls.
func (g *gradient) places() int64 { return int64(math.Round(g.limit)) }

// measures reports whether the window that ends now has shown what calls take without a queue.
func (g *gradient) measures() bool { return g.probe == 1 }

// step ends a window. ratio is the duration of its calls as a multiple of the usual one; held
// reports whether calls found no place.
func (g *gradient) step(ratio float64, held bool) {
	switch {
	case g.probe > 0:
		if g.probe--; g.probe == 0 {
			g.limit = g.resume
			if ratio < foundLess {
				g.held = probeEvery - firstProbe
			}
		}
		return
	case !held:
		return
	}
	if g.held++; g.held >= probeEvery {
		g.held, g.probe, g.resume = 0, probeWindows, g.limit
		g.limit = max(1, math.Round(g.limit/max(ratio, 1)/2))
		return
	}
	if g.rising {
		if ratio < tolerance {
			g.limit = min(2*g.limit, g.most)
			return
		}
		g.rising = false
	}
	factor := max(0.5, min(1, tolerance/ratio))
	want := g.limit*factor + math.Sqrt(g.limit)
	// Down faster than up: too high a limit costs every call its time, too low a one costs some
	// calls.
	share := 0.25
	if want < g.limit {
		share = 0.5
	}
	g.limit = min(max(g.limit+share*(want-g.limit), g.least), g.most)
}

// baseline is the duration of a class's calls without a queue.
type baseline struct {
	usual float64 // nanoseconds; 0: not known yet
}

// fold takes the average and the least duration of a window's calls into account. queued reports
// whether the limit held calls back, so that the average may be longer than the usual duration;
// measured, whether it is the usual one.
func (b *baseline) fold(average, least float64, queued, measured bool) {
	switch {
	case b.usual == 0:
		b.usual = least // perhaps all of the first calls queued, but hardly the first of them
	case measured:
		b.usual = average
	case average < b.usual:
		b.usual += (average - b.usual) / 5
	case !queued:
		b.usual += (average - b.usual) / 20
	}
}
