package ledger

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// Verdict is what comes out when executions and calls are joined.
type Verdict struct {
	Calls      int // that clients made
	Executions int
	// Broken counts the calls that violated a guarantee, and Violations describes the first ones.
	Broken     int
	Violations []string
}

// maxViolations bounds the number of descriptions.
const maxViolations = 20

// Check joins both. It sorts the slices by ID.
func Check(calls []Call, executions []Execution) Verdict {
	slices.SortFunc(calls, func(a, b Call) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	slices.SortFunc(executions, func(a, b Execution) int {
		return cmp.Or(bytes.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.At, b.At))
	})
	v := Verdict{Calls: len(calls), Executions: len(executions)}
	ran := executions
	for i := range calls {
		c := &calls[i]
		if i > 0 && calls[i-1].ID == c.ID {
			v.violated("%s: two calls have this number", c.ID)
			continue
		}
		for len(ran) > 0 && bytes.Compare(ran[0].ID[:], c.ID[:]) < 0 {
			ran = v.strange(ran)
		}
		n := 0
		for n < len(ran) && ran[n].ID == c.ID {
			n++
		}
		v.check(c, ran[:n])
		ran = ran[n:]
	}
	for len(ran) > 0 {
		ran = v.strange(ran)
	}
	return v
}

// strange removes the executions of numbers that were never called.
func (v *Verdict) strange(ran []Execution) []Execution {
	id, n := ran[0].ID, 1
	for n < len(ran) && ran[n].ID == id {
		n++
	}
	v.violated("%s: executed at %s, and never called", id, ran[0].Server)
	return ran[n:]
}

// check holds a call against its executions.
func (v *Verdict) check(c *Call, ran []Execution) {
	least, most := 1, 1
	switch c.Outcome {
	case OK, Executed:
	case Unknown:
		least = 0
	case NotSent, Refused:
		least, most = 0, 0
	default:
		v.violated("%s: %s is none that there is", c.ID, c.Outcome)
		return
	}
	if c.Idempotent && most > 0 {
		most = len(ran) // more than one attempt may have run
	}
	switch n := len(ran); {
	case n < least:
		v.violated("%s: %s, and executed nowhere", c.ID, c.Outcome)
	case n > most && n > 1:
		v.violated("%s: %s, and executed %d times, at %s and %s", c.ID, c.Outcome, n, ran[0].Server, ran[1].Server)
	case n > most:
		v.violated("%s: %s, and executed at %s", c.ID, c.Outcome, ran[0].Server)
	case c.Mixed:
		v.violated("%s: its reply is that to another call", c.ID)
	default:
		for _, e := range ran {
			if e.Entry != c.Entry {
				v.violated("%s: called with account %d and amount %d, executed with %d and %d", c.ID, c.Account, c.Amount, e.Account, e.Amount)
				return
			}
		}
	}
}

func (v *Verdict) violated(format string, args ...any) {
	if v.Broken++; v.Broken <= maxViolations {
		v.Violations = append(v.Violations, fmt.Sprintf(format, args...))
	}
}
