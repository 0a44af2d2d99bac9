package telemetry

import (
	"context"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// A wall clock that jumps, forward or back, loses no record: what counts for a second or a minute
// begins again.
func TestClockThatJumps(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 0} {
		m := New(Slow(time.Millisecond))
		tap, err := m.Tap(Filter{PerSecond: 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		// The state is that of another time, in which as many calls as possible were recorded.
		then := time.Now().Add(jump)
		full := int64(ringPace)
		if jump == 0 {
			full = 0
		}
		for _, r := range []*ring{&m.failures, &m.slow, &m.traced.ring} {
			r.second.Store(then.Unix())
			r.taken.Store(full)
		}
		m.traced.turned.Store(then.Unix())
		tap.second.Store(then.Unix())
		tap.taken.Store(full / ringPace)
		m.server.method("A.B").slowest.minute.Store(then.Unix() / 60)
		c := anser.CallInfo{Server: true, Method: "A.B", Duration: time.Second, Err: anser.Internal, Trace: anser.Trace{TraceID: [16]byte{1}, Flags: 1}}
		m.Observer().CallEnded(context.Background(), &c)
		failures, _ := m.Failures()
		slow, _ := m.SlowCalls()
		worst := m.server.method("A.B").slowest.latest()
		if len(failures) != 1 || len(slow) != 1 || len(m.traced.list()) != 1 || worst == nil || len(tap.Calls) != 1 {
			t.Errorf("after a jump by %v: %d failures, %d slow, %d traced, slowest %v, %d in the tap", jump, len(failures), len(slow), len(m.traced.list()), worst, len(tap.Calls))
		}
	}
}

// Of calls that took equally long, the first one stays the slowest.
func TestSlowestOfEqualCalls(t *testing.T) {
	var s slowest
	now := time.Now()
	calls := []*Call{{Time: now, Duration: time.Second}, {Time: now, Duration: time.Second}, {Time: now, Duration: time.Second - 1}}
	for i, c := range calls {
		if got, want := s.beats(c.Duration), i == 0; got != want {
			t.Errorf("call %d beats the others: %v, want %v", i, got, want)
		}
		if got, want := s.isWorst(c.Duration), i < 2; got != want {
			t.Errorf("no call was slower than call %d: %v, want %v", i, got, want)
		}
		s.set(c)
	}
	if s.now != calls[0] {
		t.Errorf("the slowest call is %+v, want the first one", s.now)
	}
}
