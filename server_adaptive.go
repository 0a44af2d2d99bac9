package anser

import (
	"math"
	"runtime"
	"time"
)

// adaptive finds how many calls may run at once, from how much longer they take than when there is
// nothing to wait for. It is the gradient algorithm of Netflix's concurrency-limits (Gradient2Limit),
// with three changes:
//
//   - What is compared is the average of a window, not that of single calls, with what the same method takes
//     without a queue. So methods of different cost can share a limit.
//   - What a method takes without a queue is not forgotten while calls queue all the time. It is measured
//     again in a probe, as BBR does (Cardwell et al., "BBR: Congestion-Based Congestion Control", 2016): for a moment
//     only half as many calls run as the server can work on. That also corrects what was learned from a
//     queue: it halves with each probe, and the next one follows soon.
//   - It only learns while the limit holds something back. Before, latency says nothing about the limit.
//
// It is a value without locks and clocks, so that a simulation can test it.
type adaptive struct {
	least, most float64
	limit       float64
	rising      bool    // no queue was seen yet: the limit doubles
	held        int     // windows in which the limit held calls back, since the last probe
	probe       int     // windows that are left of a probe
	resume      float64 // the limit after it
}

const (
	limitWindow  = 100 * time.Millisecond // of the samples of one step, and longer until there are enough
	limitSamples = 10                     // of one step
	tolerance    = 2.0                    // so much longer calls may take
	firstProbe   = 10                     // windows until the first probe, and until the next where one found less
	foundLess    = 0.8                    // of what was believed
	probeEvery   = 100                    // windows until the next
	probeWindows = 2                      // in the first one the calls from before end
)

func newAdaptive(least, most int) adaptive {
	if least == 0 {
		least = runtime.GOMAXPROCS(0)
	}
	if most == 0 {
		most = 10_000
	}
	most = max(most, least)
	first := min(max(16*runtime.GOMAXPROCS(0), least), most)
	return adaptive{least: float64(least), most: float64(most), limit: float64(first), rising: true, held: probeEvery - firstProbe}
}

// places is the limit as a number of calls.
func (a *adaptive) places() int64 { return int64(math.Round(a.limit)) }

// measures reports whether what the window that ends now has shown is what calls take without a queue.
func (a *adaptive) measures() bool { return a.probe == 1 }

// step ends a window. ratio is how many times as long as without a queue, as far as that was known before, its
// calls took; held says that calls found no place.
func (a *adaptive) step(ratio float64, held bool) {
	switch {
	case a.probe > 0:
		if a.probe--; a.probe == 0 {
			a.limit = a.resume
			if ratio < foundLess {
				a.held = probeEvery - firstProbe
			}
		}
		return
	case !held:
		return
	}
	if a.held++; a.held >= probeEvery {
		a.held, a.probe, a.resume = 0, probeWindows, a.limit
		a.limit = max(1, math.Round(a.limit/max(ratio, 1)/2))
		return
	}
	if a.rising {
		if ratio < tolerance {
			a.limit = min(2*a.limit, a.most)
			return
		}
		a.rising = false
	}
	gradient := max(0.5, min(1, tolerance/ratio))
	want := a.limit*gradient + math.Sqrt(a.limit)
	// Down faster than up: too high a limit costs every call its time, too low a one costs some calls.
	share := 0.25
	if want < a.limit {
		share = 0.5
	}
	a.limit = min(max(a.limit+share*(want-a.limit), a.least), a.most)
}

// pace is how long the calls of a method take without a queue.
type pace struct {
	usual float64 // nanoseconds; 0: not known yet
}

// fold takes the average and the least duration of a window's calls into account. queued says that the limit
// held calls back, so that the average may be longer than the usual; measured, that it is the usual.
func (p *pace) fold(average, least float64, queued, measured bool) {
	switch {
	case p.usual == 0:
		p.usual = least // perhaps all of the first calls queued, but hardly the first of them
	case measured:
		p.usual = average
	case average < p.usual:
		p.usual += (average - p.usual) / 5
	case !queued:
		p.usual += (average - p.usual) / 20
	}
}
