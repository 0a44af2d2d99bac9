package upkeep_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errAway    = errors.New("away")
	errRefused = errors.New("refused")
)

type (
	ledger = upkeep.Ledger[string, string]
	wish   = upkeep.Wish[string, string]
)

// open returns a ledger whose goroutine leaves all work to the test, and the ledger's log.
func open(t *testing.T) (*ledger, *bytes.Buffer) {
	log, stop := new(bytes.Buffer), make(chan struct{})
	l := upkeep.NewLedger[string, string](upkeep.Terms[string]{
		Run: func() { <-stop }, Ended: context.Cause, Outage: "noon", Log: slog.New(slog.NewTextHandler(log, nil)),
		Hopeless: func(err error) bool { return errors.Is(err, errRefused) },
		Attrs:    func(key string) []any { return []any{"name", key} },
	})
	t.Cleanup(func() { l.Close(); close(stop); l.Leave() })
	return l, log
}

// ask calls f on a goroutine and returns a channel for its error.
func ask(f func() error) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- f() }()
	synctest.Wait()
	return answer
}

func put(t *testing.T, l *ledger, key, want string) <-chan error {
	return ask(func() error { return l.Put(t.Context(), key, want) })
}

// due returns what is due under the key.
func due(t *testing.T, l *ledger, key string) wish {
	t.Helper()
	for w := range l.Due() {
		if w.Key == key {
			return w
		}
	}
	t.Fatalf("nothing is due under %q", key)
	return wish{}
}

func wantKept(t *testing.T, l *ledger, want ...string) {
	t.Helper()
	var kept []string
	for w := range l.Kept() {
		kept = append(kept, w.Key+"="+w.Want)
	}
	slices.Sort(kept)
	if !slices.Equal(kept, want) {
		t.Errorf("kept are %q, want %q", kept, want)
	}
}

func wantNothingDue(t *testing.T, l *ledger) {
	t.Helper()
	for w := range l.Due() {
		t.Errorf("%q is due under %q, want nothing", w.Want, w.Key)
	}
}

func TestCallerWaitsForTheVersionItAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := open(t)
		first := put(t, l, "one", "a")
		old := due(t, l, "one")
		second := put(t, l, "one", "b")
		l.Settle(old, false)
		if err := <-first; err != nil {
			t.Errorf("the first Put = %v", err)
		}
		synctest.Wait()
		select {
		case err := <-second:
			t.Errorf("the second Put = %v before it was written", err)
		default:
		}
		w := due(t, l, "one")
		if w.Want != "b" || !w.Force {
			t.Errorf("due is %q, force %v, want b by force", w.Want, w.Force)
		}
		l.Settle(w, false)
		if err := <-second; err != nil {
			t.Errorf("the second Put = %v", err)
		}
		wantNothingDue(t, l)
		wantKept(t, l, "one=b")
		l.MarkAll()
		if w := due(t, l, "one"); w.Force {
			t.Error("what was written once is written by force again")
		}
		wantKept(t, l)
	})
}

func TestCallerThatGivesUpLeavesWhatOthersWant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := open(t)
		first := put(t, l, "one", "a")
		reason := errors.New("lunch")
		ctx, cancel := context.WithCancelCause(t.Context())
		second := ask(func() error { return l.Put(ctx, "one", "b") })
		l.Note(errAway)
		cancel(reason)
		if err := <-second; !errors.Is(err, reason) || !errors.Is(err, errAway) {
			t.Errorf("Put that gives up = %v, want the cause of its context and why it came to that", err)
		}
		w := due(t, l, "one")
		if w.Want != "a" {
			t.Errorf("due is %q, want what the first caller still waits for", w.Want)
		}
		l.Settle(w, false)
		if err := <-first; err != nil {
			t.Errorf("the first Put = %v", err)
		}
		if err := l.Put(ctx, "one", "c"); !errors.Is(err, context.Canceled) {
			t.Errorf("Put with a context that is over = %v", err)
		}
		wantNothingDue(t, l)
	})
}

func TestKeyThatIsTakenIsLeftToItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, log := open(t)
		answer := put(t, l, "one", "a")
		l.Settle(due(t, l, "one"), false)
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		l.Mark("one")
		old := due(t, l, "one")
		// While another process takes the key, a caller registers again and gives up: this
		// process's previous record is gone, and must not come back.
		ctx, cancel := context.WithCancel(t.Context())
		again := ask(func() error { return l.Put(ctx, "one", "b") })
		l.Settle(old, true)
		cancel()
		if err := <-again; !errors.Is(err, context.Canceled) {
			t.Errorf("Put that gives up = %v", err)
		}
		if w := due(t, l, "one"); w.Want != "" || w.Force {
			t.Errorf("due is %q, force %v, want that nothing is", w.Want, w.Force)
		}
		l.Settle(due(t, l, "one"), true)
		wantNothingDue(t, l)

		answer = put(t, l, "one", "c")
		l.Settle(due(t, l, "one"), false)
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		l.Mark("one")
		l.Settle(due(t, l, "one"), true)
		wantNothingDue(t, l)
		wantKept(t, l)
		if want := `msg="another process has taken an instance over" name=one`; strings.Count(log.String(), want) != 1 {
			t.Errorf("the log is\n%swant once %s", log, want)
		}
	})
}

func TestRefusedWish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, log := open(t)
		answer := put(t, l, "one", "a")
		l.Settle(due(t, l, "one"), false)
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"one", "two"} {
			answer := put(t, l, key, "b")
			l.Refuse(due(t, l, key), errRefused)
			if err := <-answer; !errors.Is(err, errRefused) {
				t.Errorf("Put(%q) = %v, want that it is refused", key, err)
			}
		}
		wantNothingDue(t, l)
		wantKept(t, l, "one=a") // as before; there was no earlier record under two
		l.MarkAll()
		l.Refuse(due(t, l, "one"), errRefused)
		wantKept(t, l, "one=a")
		if want := `msg="the registry rejects an instance that it accepted before" name=one error=refused`; strings.Count(log.String(), want) != 1 {
			t.Errorf("the log is\n%swant once, when nobody waited: %s", log, want)
		}
	})
}

func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, log := open(t)
		answer := put(t, l, "one", "a")
		l.Note(errAway)
		l.Note(errAway)
		l.Note(nil)
		l.Note(nil)
		select {
		case err := <-answer:
			t.Errorf("Put in an outage = %v, want that it waits", err)
		default:
		}
		l.Note(errRefused)
		if err := <-answer; !errors.Is(err, errRefused) {
			t.Errorf("Put = %v, want what trying again cannot mend", err)
		}
		wantNothingDue(t, l)
		for _, want := range []string{
			`level=WARN msg="the registry cannot be reached; instances stay announced until noon" error=away`,
			`level=INFO msg="the registry is back, and has all instances"`,
		} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("the log is\n%swant once %s", log, want)
			}
		}
	})
}

func TestMarkOfWhatNobodyWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := open(t)
		if err := l.Remove(t.Context(), "one"); err != nil {
			t.Errorf("Remove of nothing = %v", err)
		}
		wantNothingDue(t, l)
		l.Mark("stray")
		w := due(t, l, "stray")
		if w.Want != "" || w.Force {
			t.Errorf("due is %q, force %v, want that nothing is", w.Want, w.Force)
		}
		wantKept(t, l)
		l.Settle(w, false)
		l.MarkAll()
		wantNothingDue(t, l)
	})
}

func TestLedgerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet, _ := open(t)
		if !quiet.Close() || quiet.Close() {
			t.Error("not the first Close, or not it alone, says that it is the first")
		}
		if keys := quiet.Leave(); len(keys) > 0 { // its goroutine never started
			t.Errorf("Leave = %q", keys)
		}

		stop := make(chan struct{})
		l := upkeep.NewLedger[string, string](upkeep.Terms[string]{
			Run: func() { <-stop }, Ended: context.Cause, Log: slog.New(slog.DiscardHandler),
		})
		there := put(t, l, "one", "a")
		l.Settle(due(t, l, "one"), false)
		waiting := put(t, l, "two", "b")
		l.Close()
		if err := l.Put(t.Context(), "three", "c"); !errors.Is(err, registry.ErrClosed) {
			t.Errorf("Put after Close = %v", err)
		}
		close(stop)
		keys := l.Leave()
		if slices.Sort(keys); !slices.Equal(keys, []string{"one", "two"}) {
			t.Errorf("Leave = %q, want what is or may be there", keys)
		}
		if err := <-there; err != nil {
			t.Error(err)
		}
		if err := <-waiting; !errors.Is(err, registry.ErrClosed) {
			t.Errorf("Put across Close = %v", err)
		}
	})
}
