package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func short() options {
	return options{
		length: 10 * time.Second, report: time.Second, clients: 4, callers: 4, registry: "memory",
		churn: 500 * time.Millisecond, cuts: 100 * time.Millisecond, calls: 10_000,
	}
}

func TestSoak(t *testing.T) {
	var out bytes.Buffer
	ok, err := run(t.Context(), short(), &out)
	if err != nil || !ok {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Logf("\n%s", &out)
}

func TestCancel(t *testing.T) {
	o := short()
	o.cancel = true
	var out bytes.Buffer
	ok, err := run(t.Context(), o, &out)
	if err != nil || !ok {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Logf("\n%s", &out)
}

// What the program looks for, it finds.
func TestAnswers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	in := request(r, Wish{Want: 100})
	for what, spoil := range map[string]func(p *Parcel){
		"the reply to":   func(p *Parcel) { p.ID = newID() },
		"is that of":     func(p *Parcel) { p.Seq++ },
		"want 100":       func(p *Parcel) { p.Data = p.Data[:99] },
		"byte 50 of 100": func(p *Parcel) { p.Data[50] ^= 1 },
		"byte 8 of 100":  func(p *Parcel) { p.Data = fill(newID(), answered, 100) },
		"byte 0 of 100":  func(p *Parcel) { p.Data = fill(p.ID, asked, 100) },
	} {
		p := in.reply()
		if err := p.answers(in); err != nil {
			t.Fatal(err)
		}
		spoil(p)
		err := p.answers(in)
		if what == "byte 8 of 100" { // whichever byte is the first one to differ
			what = "byte "
		}
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v: want %q", err, what)
		}
	}
	if (*Parcel)(nil).answers(in) == nil {
		t.Error("no reply passes")
	}
}

func TestMail(t *testing.T) {
	y, m := new(tally), newMail()
	m.sending("a")
	m.arrived("a", y)
	if y.failures.Load() != 0 || y.done[oneway].Load() != 1 {
		t.Error("a message that arrives once is a failure")
	}
	m.arrived("a", y)
	if y.failures.Load() != 1 {
		t.Error("a message that arrives twice is none")
	}
	m.sending("b")
	m.sent("b")
	for range turnsKept {
		m.turn(y)
	}
	m.arrived("b", y)
	if y.failures.Load() != 1 {
		t.Error("a message that is late is a failure")
	}
	m.sending("c")
	m.sent("c")
	m.sending("d")
	for range 2 * turnsKept {
		m.turn(y)
	}
	if y.lost.Load() != 1 || m.unsent("c") {
		t.Error("a message that never arrives is not forgotten")
	}
	if !m.unsent("d") {
		t.Error("a message that is still being sent is forgotten")
	}
}

func TestJudge(t *testing.T) {
	lost := &anser.Error{Code: anser.Unavailable, Outcome: anser.OutcomeUnknown}
	refused := &anser.Error{Code: anser.Unavailable, Outcome: anser.Refused}
	for _, c := range []struct {
		err error
		may expected
		ok  bool
	}{
		{anser.Canceled, expected{gaveUp: true}, true},
		{anser.Canceled, expected{}, false},
		{anser.DeadlineExceeded, expected{}, false},
		{lost, expected{}, true},
		{refused, expected{}, false},
		{refused, expected{gaveUp: true}, false},
		{&anser.Error{Code: anser.Unavailable, Outcome: anser.NotSent}, expected{}, false},
		{&anser.Error{Code: anser.Unavailable, Outcome: anser.NotSent}, expected{gaveUp: true}, true},
		{refused, expected{once: true}, true},
		{anser.Errorf(anser.Aborted, "as x wishes"), expected{refuse: "as x wishes"}, true},
		{anser.Errorf(anser.Aborted, "as y wishes"), expected{refuse: "as x wishes"}, false},
		{anser.Errorf(anser.Aborted, "as x wishes"), expected{}, false},
		{errors.New("whatever"), expected{gaveUp: true, panics: true, once: true}, false},
	} {
		y := new(tally)
		y.judge(unary, c.err, c.may)
		if ok := y.failures.Load() == 0; ok != c.ok {
			t.Errorf("%v with %+v: well is %v, want %v", c.err, c.may, ok, c.ok)
		}
	}
}

func TestFlat(t *testing.T) {
	var heaps []int64
	for range judged {
		heaps = append(heaps, 50<<20)
	}
	if _, _, ok, enough := flat(heaps); !ok || !enough {
		t.Error("what stays the same grows")
	}
	if _, _, _, enough := flat(heaps[1:]); enough {
		t.Error("few samples are enough")
	}
	for i := range heaps {
		heaps[i] += int64(i) << 20
	}
	if _, _, ok, _ := flat(heaps); ok {
		t.Error("what grows by half is flat")
	}
}
