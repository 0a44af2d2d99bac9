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

// The calls of a server are counted from their beginnings to their ends.
func TestOpened(t *testing.T) {
	o := observed(3, 5) // 100 calls/s, each 1 ms long, and 500 ms during the fault
	open := o.opened()
	for _, test := range []struct {
		from, to    float64
		least, most int
	}{
		{1, 2, 1, 1},
		{1.005, 1.008, 0, 0},
		{4, 4, 50, 51},
		{0, 10, 50, 51},
		{5.4, 5.6, 10, 12},
		{11, 12, 0, 0},
	} {
		if n := open.most(seconds(test.from).UnixNano(), seconds(test.to).UnixNano()); n < test.least || n > test.most {
			t.Errorf("%d calls were open from %v s to %v s, want %d to %d", n, test.from, test.to, test.least, test.most)
		}
	}
	if n := new(openCalls).most(0, 1); n != 0 {
		t.Errorf("%d of no calls were open", n)
	}
}

// A call that fails otherwise than by the refusal of a full server breaks the promise of row
// reconnect, as does a refusal by a server that has room.
func TestOnlyRefusedWhenFull(t *testing.T) {
	crowded := func() *observation {
		o := observed(3, 5)
		at := seconds(4).UnixNano()
		for range roomOfServer { // open around the call in the middle
			o.calls = append(o.calls, ledger.Call{Began: at - 1e6, Ended: at + 1e6, Outcome: ledger.OK})
		}
		for i := range o.calls[:1000] {
			o.calls[i].Outcome = ledger.OK
		}
		return o
	}
	for name, test := range map[string]struct {
		change func(o *observation)
		want   string
	}{
		"all succeed": {func(*observation) {}, held},
		"full":        {func(o *observation) { o.calls[400].Outcome = ledger.Refused }, held},
		"not full": {func(o *observation) {
			o.calls[380].Outcome, o.calls[380].Ended = ledger.Refused, seconds(3.8).UnixNano()
		}, broken},
		"unknown": {func(o *observation) { o.calls[400].Outcome = ledger.Unknown }, broken},
		"before":  {func(o *observation) { o.calls[100].Outcome = ledger.Refused }, broken},
		"long afterwards": {func(o *observation) {
			o.calls[400].Outcome, o.calls[400].Ended = ledger.Refused, seconds(10.1).UnixNano()
		}, lost},
	} {
		o := crowded()
		test.change(o)
		r := new(result)
		if r.onlyRefusedWhenFull(o, "s"); r.judge() != test.want {
			t.Errorf("%s: the row is %s, want %s: %+v", name, r.judge(), test.want, r.Figures)
		}
	}
}

// One second of a pause decides nothing, as it would in a quantile of all calls.
func TestMedianSecond(t *testing.T) {
	o := observed(10, 10)
	for i := range o.calls[300:400] {
		c := &o.calls[300+i]
		c.Ended += int64(time.Second)
	}
	all := o.between(o.began, o.fault, nil)
	if p99 := all.at(0.99); p99 < time.Second {
		t.Fatalf("p99 of all calls is %v, want more than a second", p99)
	}
	if p99 := o.medianSecond(o.began, o.fault, 0.99); p99 != time.Millisecond {
		t.Errorf("the median is %v, want 1 ms", p99)
	}
	if p99 := o.medianSecond(seconds(3), seconds(4.5), 0.99); p99 < time.Second {
		t.Errorf("the only second, and a half, have %v", p99)
	}
	if p99 := o.medianSecond(seconds(20), seconds(21), 0.99); p99 != 0 {
		t.Errorf("no calls have %v", p99)
	}
}
