package replay

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The rule of Diffy (Twitter): what differs between two replies of the same version is noise, and
// a field differs if it does so clearly more often than that.
const (
	noiseRelative = 0.2    // of the sum of both counts
	noiseAbsolute = 0.0003 // of the calls
)

// maxPaths bounds the paths of a method: a map whose keys are data has a new path for each key.
const maxPaths = 1000

// tally counts the calls of a method.
type tally struct {
	mu        sync.Mutex // guards the fields below
	sent      int64
	skipped   int64
	compared  int64 // calls whose replies were compared
	differing int64 // with a difference that is not ignored
	asked     int64 // calls for which the old version was asked twice
	codes     [2]map[string]int64
	latency   [2]*hdrhistogram.Histogram
	recorded  *hdrhistogram.Histogram
	paths     map[string]*pathTally
	more      int64 // differences of further paths
}

// pathTally counts the differences at a path.
type pathTally struct {
	differs int64
	noise   int64
	example *Example
}

func newTally() *tally {
	return &tally{
		codes: [2]map[string]int64{make(map[string]int64), make(map[string]int64)},
		paths: make(map[string]*pathTally),
	}
}

// note adds a latency to a histogram, which is made with the first one.
func note(h **hdrhistogram.Histogram, d time.Duration) {
	if *h == nil {
		*h = hdrhistogram.New(1000, int64(time.Hour), 2)
	}
	// The value is within the bounds: there is no error.
	_ = (*h).RecordValue(min(max(int64(d), 1000), int64(time.Hour)))
}

// pathLocked returns the counts of a path, or nil if there are too many.
func (t *tally) pathLocked(path string) *pathTally {
	p := t.paths[path]
	if p == nil && len(t.paths) < maxPaths {
		p = new(pathTally)
		t.paths[path] = p
	}
	return p
}

// real reports whether the differences at a path are more than noise.
func (p *pathTally) real(compared, asked int64) bool {
	if p.differs == 0 {
		return false
	}
	if p.noise == 0 || asked == 0 {
		return true
	}
	differs, noise := float64(p.differs)/float64(compared), float64(p.noise)/float64(asked)
	return differs-noise > noiseAbsolute && (differs-noise)/(differs+noise) > noiseRelative
}

// report returns the figures of a method.
func (t *tally) report(name string, targets int) Method {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := Method{
		Name: name, Sent: t.sent, Skipped: t.skipped, Compared: t.compared, Differing: t.differing, MorePaths: t.more,
		Recorded: latencies(t.recorded),
	}
	for i := range targets {
		m.Targets = append(m.Targets, Answers{Codes: t.codes[i], Latencies: latencies(t.latency[i])})
	}
	for path, p := range t.paths {
		if p.differs == 0 {
			continue
		}
		d := Difference{Path: path, Calls: p.differs, Noise: p.noise, Noisy: !p.real(t.compared, t.asked), Example: p.example}
		m.Differences = append(m.Differences, d)
	}
	slices.SortFunc(m.Differences, func(a, b Difference) int {
		if a.Noisy != b.Noisy {
			if a.Noisy {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Path, b.Path))
	})
	return m
}

func latencies(h *hdrhistogram.Histogram) Latencies {
	if h == nil {
		return Latencies{}
	}
	us := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e3 }
	return Latencies{P50: us(50), P99: us(99)}
}
