package telemetry_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// traced returns the context of the n-th trace.
func traced(n int, flags byte) anser.Trace {
	t := anser.Trace{SpanID: [8]byte{1}, Flags: flags}
	binary.BigEndian.PutUint64(t.TraceID[8:], uint64(n))
	return t
}

func traceID(n int) string {
	t := traced(n, 0)
	return hex.EncodeToString(t.TraceID[:])
}

// A meter remembers the calls of a trace that is recorded, and of another one the failed and the
// slow ones.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := telemetry.New(telemetry.Slow(10 * time.Millisecond))
		o, ctx := m.Observer(), context.Background()
		end := func(method string, n int, flags byte, took time.Duration, err error) {
			o.CallEnded(ctx, &anser.CallInfo{Server: true, Method: method, Trace: traced(n, flags), Duration: took, Err: err})
		}
		end("A.Worst", 9, 0, 9*time.Millisecond, nil) // the slowest call of its method
		for range 3 {
			end("A.Worst", 1, 1, time.Millisecond, nil)
			end("A.Worst", 2, 0, time.Millisecond, nil) // not remembered
			time.Sleep(time.Millisecond)
		}
		end("A.Worst", 2, 0, time.Millisecond, anser.Internal)
		end("A.Slow", 2, 0, 20*time.Millisecond, nil)
		for n, want := range map[int]int{1: 3, 2: 2, 3: 0, 9: 1} {
			if got := m.Trace(traceID(n)); len(got) != want {
				t.Errorf("trace %d has %d calls, want %d", n, len(got), want)
			}
		}
		if got := m.Trace(traceID(2)); got[0].Method != "A.Slow" || got[1].Code != anser.Internal {
			t.Errorf("the calls are not in the order in which they began: %v, %v", got[0], got[1])
		}
	})
}

// If more traces are recorded than a meter can keep for long, it keeps all calls of some.
func TestManyTraces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := telemetry.New(telemetry.Slow(0))
		o, ctx := m.Observer(), context.Background()
		for second := range 20 {
			for n := range 400 {
				for range 2 {
					o.CallEnded(ctx, &anser.CallInfo{Server: true, Method: "A.B", Trace: traced(second*1000+n+1, 1), Duration: 1})
				}
			}
			time.Sleep(time.Second)
		}
		kept, halves := 0, 0
		for n := 1; n <= 20_000; n++ {
			switch len(m.Trace(traceID(n))) {
			case 1:
				halves++
			case 2:
				kept++
			}
		}
		if kept < 256 || kept > 512 || halves > 1 {
			t.Errorf("%d traces are whole, %d half", kept, halves)
		}
		if first := m.Trace(traceID(3*1000 + 40)); len(first) != 2 {
			t.Errorf("a trace of 17 seconds ago has %d calls, want 2", len(first))
		}
	})
}
