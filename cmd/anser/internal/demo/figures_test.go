package demo

import (
	"errors"
	"testing"
	"time"
)

func TestFigures(t *testing.T) {
	f := newFigures()
	now := time.Unix(1000, 0)
	f.start(now)
	second := func(calls int, latency time.Duration) {
		for range calls {
			f.note("arith-1", latency, nil)
		}
		now = now.Add(time.Second)
		f.turn(now)
	}
	second(30, time.Millisecond)
	if r := f.all.rate(); r != 30 {
		t.Errorf("%g calls/s after a second with 30", r)
	}
	second(60, time.Millisecond)
	second(90, 2*time.Millisecond)
	if r := f.by["arith-1"].rate(); r != 60 {
		t.Errorf("%g calls/s after seconds with 30, 60 and 90", r)
	}
	p50, p99 := f.all.percentiles()
	if !near(p50, time.Millisecond) && !near(p50, 2*time.Millisecond) || !near(p99, 2*time.Millisecond) {
		t.Errorf("p50 %v, p99 %v", p50, p99)
	}
	f.note("", time.Second, errors.New("nobody answered"))
	f.note("arith-1", time.Hour, nil)
	for range window + 1 {
		second(0, 0)
	}
	if p50, p99 := f.all.percentiles(); p50 != 0 || p99 != 0 || f.all.rate() != 0 {
		t.Errorf("long after: p50 %v, p99 %v, %g calls/s", p50, p99, f.all.rate())
	}
	if f.all.calls != 181 || f.all.errors != 1 || f.by["arith-1"].errors != 0 || f.firstErr == nil {
		t.Errorf("%d calls, %d errors", f.all.calls, f.all.errors)
	}
	f.stop(time.Unix(1000, 0).Add(90 * time.Second))
	if e := f.elapsedLocked(); e != 90*time.Second {
		t.Errorf("elapsed %v", e)
	}
}

func near(got, want time.Duration) bool {
	return got > want-want/50 && got < want+want/50
}

func TestInstanceNames(t *testing.T) {
	if id := instanceID("arith", 2); id != "arith-2" || zone(id) != "zone-b" {
		t.Errorf("%s in %s", id, zone(id))
	}
	if _, err := serviceNamed("nope"); err == nil {
		t.Error("there is a service nope")
	}
}
