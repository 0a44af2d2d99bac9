package telemetry_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// A viewer that does not read costs calls no allocation, and what it misses is counted.
func TestTapWithoutReader(t *testing.T) {
	m := telemetry.New(telemetry.Slow(0))
	tap, err := m.Tap(telemetry.Filter{Method: "A.*"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	o, c := m.Observer(), anser.CallInfo{Server: true, Method: "A.B", Duration: time.Millisecond}
	for range 3 {
		o.CallEnded(context.Background(), &c)
	}
	if n := testing.AllocsPerRun(100, func() { o.CallEnded(context.Background(), &c) }); n != 0 {
		t.Errorf("%v allocations for a call that no viewer reads", n)
	}
	if got := tap.Dropped(); got != 102 || len(tap.Calls) != 2 { // AllocsPerRun makes one more call
		t.Errorf("%d dropped, %d kept, want 102 and 2", got, len(tap.Calls))
	}
}

// A tap takes records up to its pace, and none of the other calls.
func TestTapPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := telemetry.New(telemetry.Slow(0))
		tap, err := m.Tap(telemetry.Filter{PerSecond: 5}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		o, c := m.Observer(), anser.CallInfo{Server: true, Method: "A.B", Duration: time.Millisecond}
		for range 3 {
			for range 50 {
				o.CallEnded(context.Background(), &c)
			}
			time.Sleep(time.Second)
		}
		if len(tap.Calls) != 15 || tap.Dropped() != 135 {
			t.Errorf("%d calls, %d dropped, want 15 and 135", len(tap.Calls), tap.Dropped())
		}
	})
}

// A tap for a trace gets the calls of that trace alone, with the ids that an observer has chosen or
// with those of the caller.
func TestTapOfTrace(t *testing.T) {
	m := telemetry.New()
	const id = "0102030405060708090a0b0c0d0e0f10"
	tap, err := m.Tap(telemetry.Filter{Trace: id}, 10)
	if err != nil {
		t.Fatal(err)
	}
	own := anser.Trace{TraceID: [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, SpanID: [8]byte{1}}
	parent := anser.Trace{TraceID: own.TraceID, SpanID: [8]byte{2}}
	o, ctx := m.Observer(), context.Background()
	o.CallEnded(ctx, &anser.CallInfo{Server: true, Method: "A.Other", Trace: anser.Trace{TraceID: [16]byte{7}}})
	o.CallEnded(ctx, &anser.CallInfo{Server: true, Method: "A.Chosen", Trace: own, Parent: parent})
	o.CallEnded(anser.WithTrace(ctx, parent), &anser.CallInfo{Method: "A.Sent"})
	o.CallEnded(ctx, &anser.CallInfo{Method: "A.None"})
	var got []string
	for len(tap.Calls) > 0 {
		c := <-tap.Calls
		got = append(got, c.Method+" "+c.TraceID+" "+c.SpanID+"<"+c.ParentID)
	}
	if want := "A.Chosen " + id + " 0100000000000000<0200000000000000|A.Sent " + id + " <0200000000000000"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, bad := range []string{"x", id[1:], id + "0", strings.Repeat("z", 32)} {
		if _, err := m.Tap(telemetry.Filter{Trace: bad}, 1); err == nil || !strings.Contains(err.Error(), "32 digits") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
