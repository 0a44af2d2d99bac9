package main

import (
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// seconds is a moment of an observation.
func seconds(s float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

// observed returns an observation of a hundred calls per second for ten seconds. Calls due between
// the two times fail by their deadline of half a second.
func observed(from, to float64) *observation {
	o := &observation{rate: 100, began: seconds(0), fault: seconds(from), heal: seconds(to), end: seconds(10)}
	for i := range 1000 {
		due := seconds(float64(i) / 100)
		c := ledger.Call{Entry: ledger.Entry{ID: ledger.NewID()}, Due: due.UnixNano(), Began: due.UnixNano(), Idempotent: i%2 == 1, Outcome: ledger.OK}
		c.Ended = due.Add(time.Millisecond).UnixNano()
		if !due.Before(o.fault) && due.Before(o.heal) {
			c.Outcome, c.Code = ledger.Unknown, uint8(anser.DeadlineExceeded)
			c.Ended = due.Add(500 * time.Millisecond).UnixNano()
		} else {
			o.executions = append(o.executions, ledger.Execution{Entry: c.Entry, At: due.UnixNano(), Server: "s"})
		}
		o.calls = append(o.calls, c)
	}
	return o
}

func TestObservation(t *testing.T) {
	o := observed(3, 5)
	if took, ok := o.back(o.fault, 0.99, nil); !ok || took < 1900*time.Millisecond || took > 2100*time.Millisecond {
		t.Errorf("back after %v, %v, want 2 s", took, ok)
	}
	if took, ok := o.back(o.heal, 0.99, nil); !ok || took > 100*time.Millisecond {
		t.Errorf("back after %v, %v from the end on, want at once", took, ok)
	}
	if took, ok := o.back(o.fault, 1.5, nil); ok {
		t.Errorf("it reached one and a half times the rate after %v", took)
	}
	if n := len(o.failed(plain)); n != 100 {
		t.Errorf("%d plain calls failed, want 100", n)
	}
	if n := count(o.failed(nil), by(anser.DeadlineExceeded)); n != 200 {
		t.Errorf("%d calls failed by deadline, want 200", n)
	}
	if n := o.open(seconds(4), seconds(4), plain); n < 24 || n > 26 {
		t.Errorf("%d plain calls were open in the middle, want 25", n)
	}
	if n := o.open(seconds(4), seconds(4.2), plain); n < 34 || n > 36 {
		t.Errorf("%d plain calls were open within 0.2 s, want 35", n)
	}
	if s := o.between(o.began, o.fault, idempotent); s.calls != 150 || s.ok != 150 || s.at(1) != time.Millisecond {
		t.Errorf("before: %d calls, %d ok, the longest %v", s.calls, s.ok, s.at(1))
	}
	if s := o.between(o.fault, o.heal, nil); s.calls != 200 || s.ok != 0 || s.at(0.5) != 0 {
		t.Errorf("during: %d calls, %d ok", s.calls, s.ok)
	}
	if d := o.late(400 * time.Millisecond); d != 100*time.Millisecond {
		t.Errorf("a call was late by %v, want 100 ms", d)
	}
	if d := o.late(time.Second); d != 0 {
		t.Errorf("a call was late by %v, want none", d)
	}
	if took, ok := o.usedAgain("s", o.fault); !ok || took != 2*time.Second {
		t.Errorf("used again after %v, %v, want 2 s", took, ok)
	}
	if _, ok := o.usedAgain("another", o.fault); ok {
		t.Error("a server that has executed nothing was used again")
	}
}
