package anser

import (
	"strings"
	"testing"
)

// String lists the flags of a verdict.
func (v verdict) String() string {
	var list []string
	for i, name := range []string{"again", "wait", "budget", "once", "same life"} {
		if v&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return strings.Join(list, ", ")
}

// Every cell of the table. A kind of failure that is added needs a line here.
func TestVerdicts(t *testing.T) {
	want := map[failureKind][2]string{ // without another instance, and with one
		kindFinal:       {"", ""},
		kindUnreached:   {"again", "again"},
		kindUnreachable: {"again, wait", "again, wait"},
		kindUnsent:      {"again, wait", "again"},
		kindUnsuitable:  {"", "again"},
		kindMoved:       {"again", "again"},
		kindOverloaded:  {"again, wait, budget", "again, wait, budget"},
		kindUnavailable: {"again, wait", "again, once"},
		kindRefused:     {"", "again, once"},
		kindExecuted:    {"again, wait, budget", "again, wait, budget"},
		kindKeyed:       {"again, wait, budget, same life", "again, wait, budget, same life"},
		kindUnknown:     {"again, wait, budget", "again, budget"},
	}
	for kind, cells := range verdicts {
		w, known := want[failureKind(kind)]
		if !known {
			t.Errorf("the test does not know the kind %d", kind)
		}
		for i, v := range cells {
			if v.String() != w[i] {
				t.Errorf("kind %d with another instance %v: %q, want %q", kind, i == 1, v, w[i])
			}
		}
	}
}

// A failed attempt in a situation.
type failed struct {
	err *Error
	situation
	mayFollow bool // another attempt, for neither the call nor the error forbids it
}

func (f *failed) code(list ...Code) bool {
	for _, c := range list {
		if f.err.Code == c {
			return true
		}
	}
	return false
}

// allows reports whether neither the call nor the error forbids another attempt.
func (f *failed) allows() bool {
	return !f.failfast && !f.over && f.err.RetryAfter >= 0 && f.err.Phase != PhaseDecode &&
		(f.err.Outcome == Executed || !f.code(DeadlineExceeded, Canceled))
}

func (f *failed) is(o Outcome) bool { return f.mayFollow && f.err.Outcome == o }

// unconnected reports whether the attempt found no connection.
func (f *failed) unconnected() bool { return f.is(NotSent) && f.err.Phase == PhaseDial }

// hopeless reports whether the obstacle stays.
func (f *failed) hopeless() bool {
	return f.err.obstacle == lasting || f.err.obstacle == absent && f.absent
}

// ran reports whether the attempt has or may have run, and another one may be sent.
func (f *failed) ran(o Outcome) bool { return f.is(o) && !f.err.moved && !f.spent }

// kinds is the definition of the kinds of failures: each possible failure is of one of them.
var kinds = []struct {
	kind failureKind
	is   func(f *failed) bool
}{
	{kindFinal, func(f *failed) bool { return !f.mayFollow }},

	{kindUnreached, func(f *failed) bool { return f.unconnected() && f.several && f.fresh && !f.err.nowhere }},
	{kindFinal, func(f *failed) bool {
		return f.unconnected() && !(f.several && f.fresh && !f.err.nowhere) && f.hopeless()
	}},
	{kindUnreachable, func(f *failed) bool {
		return f.unconnected() && f.several && (!f.fresh || f.err.nowhere) && !f.hopeless()
	}},
	{kindUnsent, func(f *failed) bool { return f.unconnected() && !f.several && !f.hopeless() }},

	{kindFinal, func(f *failed) bool { return f.is(NotSent) && f.err.Phase == PhasePick && f.bound }},
	{kindUnsuitable, func(f *failed) bool {
		return f.is(NotSent) && f.err.Phase == PhasePick && !f.bound && f.code(Unauthenticated)
	}},
	{kindUnsent, func(f *failed) bool {
		return f.is(NotSent) && f.err.Phase == PhasePick && !f.bound && !f.code(Unauthenticated)
	}},
	{kindUnsuitable, func(f *failed) bool {
		return f.is(NotSent) && f.err.Phase == PhaseWrite && f.code(ResourceExhausted, Unimplemented, Unauthenticated)
	}},
	{kindUnsent, func(f *failed) bool {
		return f.is(NotSent) && f.err.Phase == PhaseWrite && !f.code(ResourceExhausted, Unimplemented, Unauthenticated)
	}},
	{kindUnsuitable, func(f *failed) bool {
		return f.is(NotSent) && f.err.Phase == PhaseWait && f.code(Unauthenticated)
	}},
	{kindUnsent, func(f *failed) bool {
		return f.is(NotSent) && f.err.Phase == PhaseWait && !f.code(Unauthenticated)
	}},

	{kindMoved, func(f *failed) bool { return f.mayFollow && f.err.Outcome != NotSent && f.err.moved }},
	{kindFinal, func(f *failed) bool {
		return f.mayFollow && f.err.Outcome != NotSent && !f.err.moved && f.spent
	}},

	{kindOverloaded, func(f *failed) bool { return f.ran(Refused) && f.code(ResourceExhausted) }},
	{kindUnavailable, func(f *failed) bool { return f.ran(Refused) && f.code(Unavailable) && !(f.another && f.refused) }},
	{kindFinal, func(f *failed) bool { return f.ran(Refused) && f.code(Unavailable) && f.another && f.refused }},
	{kindRefused, func(f *failed) bool {
		return f.ran(Refused) && !f.code(ResourceExhausted, Unavailable) && !f.refused
	}},
	{kindFinal, func(f *failed) bool {
		return f.ran(Refused) && !f.code(ResourceExhausted, Unavailable) && f.refused
	}},

	{kindExecuted, func(f *failed) bool { return f.ran(Executed) && f.listed && f.repeat == repeatAnywhere }},
	{kindFinal, func(f *failed) bool { return f.ran(Executed) && !(f.listed && f.repeat == repeatAnywhere) }},

	{kindUnknown, func(f *failed) bool { return f.ran(OutcomeUnknown) && f.repeat == repeatAnywhere }},
	{kindKeyed, func(f *failed) bool { return f.ran(OutcomeUnknown) && f.repeat == repeatByKey }},
	{kindFinal, func(f *failed) bool { return f.ran(OutcomeUnknown) && f.repeat == repeatNowhere }},
}

// Each combination of an error and a situation matches one line of kinds, and is of its kind.
func TestKindsOfFailures(t *testing.T) {
	for _, err := range possibleFailures() {
		f := failed{err: err}
		for bits := range 1 << 10 {
			for i, flag := range []*bool{
				&f.failfast, &f.over, &f.bound, &f.several, &f.another,
				&f.fresh, &f.absent, &f.spent, &f.refused, &f.listed,
			} {
				*flag = bits>>i&1 != 0
			}
			f.mayFollow = f.allows()
			for f.repeat = range repeatAnywhere + 1 {
				matches := 0
				for i := range kinds {
					if !kinds[i].is(&f) {
						continue
					}
					matches++
					if got := f.kindOf(err); got != kinds[i].kind {
						t.Fatalf("%+v in the situation %+v is of kind %d, want %d", *err, f.situation, got, kinds[i].kind)
					}
				}
				if matches != 1 {
					t.Fatalf("%d lines match %+v in the situation %+v, want 1", matches, *err, f.situation)
				}
			}
		}
	}
}

// possibleFailures returns an error for each combination of what the kinds distinguish.
func possibleFailures() (list []*Error) {
	for outcome := NotSent; outcome <= Executed; outcome++ {
		for _, phase := range []Phase{PhasePick, PhaseDial, PhaseWrite, PhaseWait, PhaseDecode} {
			for _, code := range []Code{Unavailable, ResourceExhausted, Unimplemented, Unauthenticated, DeadlineExceeded, Canceled, Internal} {
				e := Error{Outcome: outcome, Phase: phase, Code: code}
				never := e
				never.RetryAfter = RetryNever
				list = append(list, &e, &never)
				moved := e
				moved.moved = true
				if outcome != NotSent {
					list = append(list, &moved)
				}
				for why := passing; why <= lasting && outcome == NotSent && phase == PhaseDial; why++ {
					for _, nowhere := range []bool{false, true} {
						unreached := e
						unreached.obstacle, unreached.nowhere = why, nowhere
						list = append(list, &unreached)
					}
				}
			}
		}
	}
	return list
}
