package admin

import (
	"net/http"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/sysusage"
	"github.com/anser-rpc/anser/telemetry"
)

const (
	sampleEvery = time.Second            // the least time between two kept samples
	shareFor    = 200 * time.Millisecond // viewers that come at once share a sample
	firstLook   = time.Second            // how long the first viewer waits for rates
	oldest      = 15 * time.Second       // an older sample says nothing about now
	wanted      = 2 * time.Second        // the length of a window, if the samples allow it
	keptSamples = 4
)

// sample is what was measured at a time.
type sample struct {
	telemetry.Snapshot
	cpu time.Duration
}

// sampler keeps the samples of the last seconds in which a viewer looked. Nothing runs while none
// does.
type sampler struct {
	meter *telemetry.Meter

	mu   sync.Mutex // guards kept, and is held while a sample is made
	kept []*sample  // the last one first
}

// look returns a sample of now, and an earlier one, or nil.
func (s *sampler) look() (now, before *sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now()
	if len(s.kept) > 0 && at.Sub(s.kept[0].Time) < shareFor {
		now = s.kept[0]
	} else {
		now = &sample{s.meter.Snapshot(), time.Duration(sysusage.CurrentProcess().CPU)}
	}
	for _, k := range s.kept {
		age := now.Time.Sub(k.Time)
		if k == now || age <= 0 || age > oldest {
			continue
		}
		if before = k; age >= wanted {
			break
		}
	}
	if len(s.kept) == 0 || now.Time.Sub(s.kept[0].Time) >= sampleEvery {
		s.kept = append([]*sample{now}, s.kept[:min(len(s.kept), keptSamples-1)]...)
	}
	return now, before
}

// methodKey identifies a method in a sample.
type methodKey struct {
	server       bool
	target, name string
}

// difference is what happened between two samples.
type difference struct {
	window time.Duration
	before map[methodKey]*telemetry.Method
}

func newDifference(now, before *sample) *difference {
	if before == nil {
		return nil
	}
	d := &difference{now.Time.Sub(before.Time), make(map[methodKey]*telemetry.Method, len(before.Methods))}
	for i := range before.Methods {
		m := &before.Methods[i]
		d.before[methodKey{m.Server, m.Target, m.Name}] = m
	}
	return d
}

// tally adds up what happened in a window.
type tally struct {
	all, failed       uint64
	times             telemetry.Histogram
	requests, replies uint64
}

// add adds the calls of a method since the earlier sample.
func (t *tally) add(d *difference, m *telemetry.Method) {
	all, failed := m.Calls()
	times := m.Times()
	requests, replies := m.RequestBytes, m.ReplyBytes
	if b := d.before[methodKey{m.Server, m.Target, m.Name}]; b != nil {
		allThen, failedThen := b.Calls()
		then := b.Times()
		all, failed = all-min(all, allThen), failed-min(failed, failedThen)
		requests, replies = requests-min(requests, b.RequestBytes), replies-min(replies, b.ReplyBytes)
		times.Sub(&then)
	}
	t.all, t.failed, t.requests, t.replies = t.all+all, t.failed+failed, t.requests+requests, t.replies+replies
	t.times.Add(&times)
}

// recent returns the calls of the window, or nil if it is not known.
func (t *tally) recent(d *difference) *Recent {
	if d == nil {
		return nil
	}
	seconds := d.window.Seconds()
	return &Recent{
		Rate: float64(t.all) / seconds, Failed: float64(t.failed) / seconds,
		P50: t.times.Quantile(0.5), P90: t.times.Quantile(0.9), P99: t.times.Quantile(0.99), P999: t.times.Quantile(0.999),
		Getting: float64(t.requests) / seconds, Sending: float64(t.replies) / seconds,
	}
}

// await makes the first viewer wait, so that it sees rates. Others come while there are samples.
func (p *Page) await(r *http.Request) {
	if _, before := p.samples.look(); before != nil {
		return
	}
	select {
	case <-time.After(firstLook):
	case <-p.closed:
	case <-r.Context().Done():
	}
}
