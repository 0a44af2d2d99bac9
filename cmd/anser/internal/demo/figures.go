package demo

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Time windows of the live table in seconds.
const (
	window     = 10 // percentiles
	rateWindow = 3  // calls per second
)

// figures holds the measurements of the callers. The methods are safe for concurrent use.
type figures struct {
	mu       sync.Mutex // guards the fields below
	all      *series
	by       map[string]*series // by instance
	turned   time.Time
	began    time.Time // zero before the traffic starts
	stopped  time.Time // zero during the traffic
	firstErr error
	slowest  time.Duration // slowest call since forgetLongest
}

// series holds the figures of one instance, or of all.
type series struct {
	calls, errors int64
	total         *hdrhistogram.Histogram // of microseconds
	recent        [window]*hdrhistogram.Histogram
	took          [window]time.Duration // durations of those seconds; 0: not over, or none yet
	now           int                   // index of the current second
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 2)
}

func newSeries() *series {
	s := &series{total: newHistogram()}
	for i := range s.recent {
		s.recent[i] = newHistogram()
	}
	return s
}

func (s *series) note(latency time.Duration, err error) {
	if err != nil {
		s.errors++
		return
	}
	s.calls++
	us := min(max(latency.Microseconds(), 1), s.total.HighestTrackableValue())
	s.total.RecordValue(us)
	s.recent[s.now].RecordValue(us)
}

// turn starts the next second.
func (s *series) turn(took time.Duration) {
	s.took[s.now] = took
	s.now = (s.now + 1) % window
	s.recent[s.now].Reset()
	s.took[s.now] = 0
}

// rate returns the calls per second over the last complete seconds.
func (s *series) rate() float64 {
	var calls int64
	var took time.Duration
	for i := 1; i <= rateWindow; i++ {
		at := (s.now - i + window) % window
		if s.took[at] > 0 {
			calls += s.recent[at].TotalCount()
			took += s.took[at]
		}
	}
	if took == 0 {
		return 0
	}
	return float64(calls) / took.Seconds()
}

// percentiles returns the percentiles of the last seconds.
func (s *series) percentiles() (p50, p99 time.Duration) {
	h := newHistogram()
	for _, r := range s.recent {
		h.Merge(r)
	}
	return at(h, 50), at(h, 99)
}

func at(h *hdrhistogram.Histogram, percentile float64) time.Duration {
	return time.Duration(h.ValueAtPercentile(percentile)) * time.Microsecond
}

func newFigures() *figures {
	return &figures{all: newSeries(), by: make(map[string]*series)}
}

// ofLocked returns the figures of an instance.
func (f *figures) ofLocked(id string) *series {
	s := f.by[id]
	if s == nil {
		s = newSeries()
		f.by[id] = s
	}
	return s
}

// note counts a call that the instance answered, or that failed there; id is "" if no instance is
// responsible.
func (f *figures) note(id string, latency time.Duration, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && f.firstErr == nil {
		f.firstErr = err
	}
	f.all.note(latency, err)
	f.slowest = max(f.slowest, latency)
	if id != "" {
		f.ofLocked(id).note(latency, err)
	}
}

// turn starts the next second of the live table.
func (f *figures) turn(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	took := now.Sub(f.turned)
	if f.turned.IsZero() {
		took = 0
	}
	f.turned = now
	f.all.turn(took)
	for _, s := range f.by {
		s.turn(took)
	}
}

// start and stop mark the time of the traffic.
func (f *figures) start(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began, f.turned = now, now
}

func (f *figures) stop(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = now
}

// elapsedLocked is the duration of the traffic so far.
func (f *figures) elapsedLocked() time.Duration {
	switch {
	case f.began.IsZero():
		return 0
	case f.stopped.IsZero():
		return time.Since(f.began)
	}
	return f.stopped.Sub(f.began)
}

// totals returns the calls so far, the failed ones, and the duration of the traffic.
func (f *figures) totals() (calls, errors int64, elapsed time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all.calls, f.all.errors, f.elapsedLocked()
}

// share returns the calls to all instances of the service so far, and those to this instance.
func (f *figures) share(in *instance) (all, one int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := range instancesOfService + 1 { // with the canary
		all += f.ofLocked(instanceID(in.service, n+1)).calls
	}
	return all, f.ofLocked(in.id).calls
}

// forgetLongest starts the measurement of longest.
func (f *figures) forgetLongest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slowest = 0
}

// longest returns how long the slowest call took.
func (f *figures) longest() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slowest
}
