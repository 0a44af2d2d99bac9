package ledger_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// made returns a call with an outcome, and the execution that belongs to it.
func made(o ledger.Outcome) (ledger.Call, ledger.Execution) {
	e := ledger.Entry{ID: ledger.NewID(), Account: 7, Amount: -3}
	return ledger.Call{Entry: e, Outcome: o, Due: 1, Began: 2, Ended: 3}, ledger.Execution{Entry: e, At: 2, Server: "s1"}
}

// Every promise is broken once, among a hundred calls of which none is, and found.
func TestViolations(t *testing.T) {
	const twice = 2
	for _, c := range []struct {
		name       string
		outcome    ledger.Outcome
		idempotent bool
		executions int
		change     func(*ledger.Call, []ledger.Execution)
		want       string // part of the violation; empty: there is none
	}{
		{"ok once", ledger.OK, false, 1, nil, ""},
		{"ok never", ledger.OK, false, 0, nil, "executed nowhere"},
		{"ok twice", ledger.OK, false, twice, nil, "executed 2 times"},
		{"not sent", ledger.NotSent, false, 0, nil, ""},
		{"not sent, executed", ledger.NotSent, false, 1, nil, "not sent, and executed at s1"},
		{"refused", ledger.Refused, false, 0, nil, ""},
		{"refused, executed", ledger.Refused, false, 1, nil, "refused, and executed at s1"},
		{"unknown never", ledger.Unknown, false, 0, nil, ""},
		{"unknown once", ledger.Unknown, false, 1, nil, ""},
		{"unknown twice", ledger.Unknown, false, twice, nil, "executed 2 times"},
		{"handler's error", ledger.Executed, false, 1, nil, ""},
		{"handler's error, never", ledger.Executed, false, 0, nil, "executed nowhere"},
		{"handler's error, twice", ledger.Executed, false, twice, nil, "executed 2 times"},
		{"idempotent twice", ledger.OK, true, twice, nil, ""},
		{"idempotent never", ledger.OK, true, 0, nil, "executed nowhere"},
		{"idempotent, unknown twice", ledger.Unknown, true, twice, nil, ""},
		{"idempotent, not sent, executed", ledger.NotSent, true, 1, nil, "not sent, and executed at s1"},
		{"another's reply", ledger.OK, false, 1, func(c *ledger.Call, _ []ledger.Execution) { c.Mixed = true }, "that to another call"},
		{"another's reply, idempotent", ledger.OK, true, 1, func(c *ledger.Call, _ []ledger.Execution) { c.Mixed = true }, "that to another call"},
		{"another amount", ledger.OK, false, 1, func(_ *ledger.Call, e []ledger.Execution) { e[0].Amount++ }, "amount -3"},
		{"another account", ledger.OK, true, twice, func(_ *ledger.Call, e []ledger.Execution) { e[1].Account++ }, "account 7"},
		{"another number", ledger.Unknown, false, 1, func(_ *ledger.Call, e []ledger.Execution) { e[0].ID = ledger.NewID() }, "never called"},
		{"no outcome", 99, false, 1, nil, "outcome 99"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls []ledger.Call
			var executions []ledger.Execution
			for range 100 {
				call, e := made(ledger.OK)
				calls, executions = append(calls, call), append(executions, e)
			}
			call, e := made(c.outcome)
			call.Idempotent = c.idempotent
			own := slices.Repeat([]ledger.Execution{e}, c.executions)
			if c.change != nil {
				c.change(&call, own)
			}
			v := ledger.Check(append(calls, call), append(executions, own...))
			if v.Calls != 101 || v.Executions != 100+c.executions {
				t.Errorf("%+v", v)
			}
			switch {
			case c.want == "" && v.Broken != 0:
				t.Errorf("found %q", v.Violations)
			case c.want != "" && (v.Broken != 1 || !strings.Contains(v.Violations[0], c.want)):
				t.Errorf("found %q, want one with %q", v.Violations, c.want)
			}
		})
	}
}

func TestSameNumberTwice(t *testing.T) {
	c, e := made(ledger.OK)
	v := ledger.Check([]ledger.Call{c, c}, []ledger.Execution{e})
	if v.Broken != 1 || !strings.Contains(v.Violations[0], "two calls") {
		t.Errorf("%+v", v)
	}
}

// All are counted, and some told.
func TestManyViolations(t *testing.T) {
	var executions []ledger.Execution
	for range 100 {
		_, e := made(ledger.OK)
		executions = append(executions, e, e)
	}
	if v := ledger.Check(nil, executions); v.Broken != 100 || len(v.Violations) != 20 {
		t.Errorf("%d broken, %d told", v.Broken, len(v.Violations))
	}
}

func TestBooks(t *testing.T) {
	dir := t.TempDir()
	var want []ledger.Execution
	for server := range 3 {
		name := fmt.Sprintf("s%d", server)
		b, err := ledger.OpenBook(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 50 {
			_, e := made(ledger.OK)
			e.Server = name
			want = append(want, e)
			wg.Go(func() {
				if err := b.Record(&e); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ledger.Executions(dir)
	if err != nil {
		t.Fatal(err)
	}
	byID := func(a, b ledger.Execution) int { return slices.Compare(a.ID[:], b.ID[:]) }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if !slices.Equal(got, want) {
		t.Errorf("read %d executions, wrote %d, or they differ", len(got), len(want))
	}
	book := filepath.Join(dir, "s1.book")
	if err := os.Truncate(book, 41); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Executions(dir); err == nil || !strings.Contains(err.Error(), "middle of a record") {
		t.Errorf("a book that was cut: %v", err)
	}
}

func TestCalls(t *testing.T) {
	var want []ledger.Call
	for i := range 100 {
		c, _ := made(ledger.Outcome(i % 5))
		c.Code, c.Idempotent, c.Mixed, c.Due = uint8(i), i%2 == 0, i%3 == 0, -int64(i)
		want = append(want, c)
	}
	name := filepath.Join(t.TempDir(), "calls")
	if err := ledger.WriteCalls(name, want); err != nil {
		t.Fatal(err)
	}
	if got, err := ledger.ReadCalls(name); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v; read %d calls, wrote %d, or they differ", err, len(got), len(want))
	}
}
