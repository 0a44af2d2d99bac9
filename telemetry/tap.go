package telemetry

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
)

// Filter selects calls for a [Tap].
type Filter struct {
	Side    string        // "server", "client", or "" for both
	Method  string        // a name, or a prefix that ends with "*"; "" for all
	Failed  bool          // only calls that failed
	Slower  time.Duration // only calls that took at least as long
	Trace   string        // only calls of the trace with this id, 32 digits of hexadecimal; "" for all
	Sampled float64       // fraction of the calls that pass; 0 means all
	// PerSecond bounds the calls in a second; 0 means no bound. No record is made of the others.
	PerSecond int
}

// Tap gets calls as they happen.
type Tap struct {
	// Calls gets the records. What finds no room in it is dropped.
	Calls   <-chan *Call
	calls   chan *Call
	filter  Filter
	trace   [16]byte      // of the filter
	count   atomic.Uint64 // calls that the filter selects, if it takes a fraction of them
	second  atomic.Int64  // for which taken counts
	taken   atomic.Int64
	dropped atomic.Uint64
}

// maxTaps is the number of taps of a meter.
const maxTaps = 16

// ErrTooManyTaps is the error of [Meter.Tap] if there are 16 already.
var ErrTooManyTaps = errors.New("there are 16 taps already: end one of them first")

var errNotMade = errors.New("the meter was not made by telemetry.New")

// Tap returns a tap for the calls that the filter selects, with room for n of them. It ends with
// Untap. A call of which no tap takes a record, because of the filters, their PerSecond or a lack
// of room, costs no allocation.
func (m *Meter) Tap(f Filter, n int) (*Tap, error) {
	if !m.made() {
		return nil, errNotMade
	}
	t := &Tap{filter: f, calls: make(chan *Call, max(n, 1))}
	t.Calls = t.calls
	if f.Trace != "" {
		if n, err := hex.Decode(t.trace[:], []byte(f.Trace[:min(len(f.Trace), 32)])); err != nil || n != len(t.trace) || len(f.Trace) != 32 {
			return nil, fmt.Errorf("%q is no id of a trace: use its 32 digits of hexadecimal", f.Trace)
		}
	}
	m.tapping.Lock()
	defer m.tapping.Unlock()
	var list []*Tap
	if old := m.taps.Load(); old != nil {
		list = append(list, *old...)
	}
	if len(list) >= maxTaps {
		return nil, ErrTooManyTaps
	}
	list = append(list, t)
	m.taps.Store(&list)
	return t, nil
}

// Untap ends a tap. Its channel is not closed.
func (m *Meter) Untap(t *Tap) {
	if !m.made() {
		return
	}
	m.tapping.Lock()
	defer m.tapping.Unlock()
	var list []*Tap
	if old := m.taps.Load(); old != nil {
		for _, o := range *old {
			if o != t {
				list = append(list, o)
			}
		}
	}
	if len(list) == 0 {
		m.taps.Store(nil)
		return
	}
	m.taps.Store(&list)
}

// Dropped returns how many calls that the filter selects were left out, as they found no room or
// were more than PerSecond.
func (t *Tap) Dropped() uint64 { return t.dropped.Load() }

// wants reports whether the tap takes a record of a call.
func (t *Tap) wants(ctx context.Context, c *anser.CallInfo, code anser.Code) bool {
	f := &t.filter
	if f.Side != "" && (f.Side == "server") != c.Server || f.Failed && code == anser.OK || c.Duration < f.Slower {
		return false
	}
	if prefix, ok := strings.CutSuffix(f.Method, "*"); ok && !strings.HasPrefix(c.Method, prefix) || !ok && f.Method != "" && f.Method != c.Method {
		return false
	}
	if f.Trace != "" && traceOf(ctx, c) != t.trace {
		return false
	}
	if f.Sampled > 0 && f.Sampled < 1 {
		if n := float64(t.count.Add(1)); math.Floor(n*f.Sampled) <= math.Floor((n-1)*f.Sampled) {
			return false
		}
	}
	if len(t.calls) == cap(t.calls) || !t.inPace() {
		t.dropped.Add(1)
		return false
	}
	return true
}

// inPace reports whether the tap may take another call in this second.
func (t *Tap) inPace() bool {
	if t.filter.PerSecond <= 0 {
		return true
	}
	if now := time.Now().Unix(); t.second.Swap(now) != now {
		t.taken.Store(0)
	}
	return t.taken.Add(1) <= int64(t.filter.PerSecond)
}

func (t *Tap) give(c *Call) {
	select {
	case t.calls <- c:
	default:
		t.dropped.Add(1)
	}
}
