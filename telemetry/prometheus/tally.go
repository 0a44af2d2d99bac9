package prometheus

import (
	"sync"

	prom "github.com/prometheus/client_golang/prometheus"
)

// sample identifies a value of a family with up to two labels.
type sample struct {
	family *family
	labels [2]string
}

// tally holds the values of samples.
type tally map[sample]float64

// add adds to a sample. What callers or peers chose in the labels becomes clean.
func (t tally) add(f *family, value float64, labels ...string) { t[f.sample(labels)] += value }

// least keeps the least of the values of a sample, and most the greatest.
func (t tally) least(f *family, value float64, labels ...string) {
	t.keep(f, value, labels, func(old float64) bool { return value < old })
}

func (t tally) most(f *family, value float64, labels ...string) {
	t.keep(f, value, labels, func(old float64) bool { return value > old })
}

func (t tally) keep(f *family, value float64, labels []string, better func(old float64) bool) {
	at := f.sample(labels)
	if old, ok := t[at]; !ok || better(old) {
		t[at] = value
	}
}

func (f *family) sample(labels []string) sample {
	s := sample{family: f}
	for i, value := range labels {
		s.labels[i] = clean(value)
	}
	return s
}

// collect sends the samples.
func (t tally) collect(ch chan<- prom.Metric) {
	for s, value := range t {
		ch <- s.family.metric(value, s.labels[:len(s.family.labels)]...)
	}
}

// source is a server or a client.
type source interface {
	comparable
	// tell adds the present values. They are counters if live is false.
	tell(t tally, live bool)
}

// totals adds up what sources count, including the ones that have ended: a counter must not fall.
// A source that ends is asked for the last time at the next sum.
type totals[S source] struct {
	mu    sync.Mutex // guards the fields below
	known map[S]struct{}
	past  tally // of the sources that have ended
}

func newTotals[S source]() *totals[S] {
	return &totals[S]{known: make(map[S]struct{}), past: make(tally)}
}

// sum returns the values of all sources, of which the given ones have not ended.
func (t *totals[S]) sum(live []S) tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(tally)
	now := make(map[S]struct{}, len(live))
	for _, s := range live {
		now[s] = struct{}{}
		s.tell(all, true)
	}
	for s := range t.known {
		if _, ok := now[s]; !ok {
			s.tell(t.past, false)
		}
	}
	t.known = now
	for s, value := range t.past {
		all[s] += value
	}
	return all
}
