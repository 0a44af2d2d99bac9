package regtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a testing.TB that counts failures and continues.
type recorder struct {
	testing.TB
	failures int
}

func (r *recorder) Errorf(string, ...any) { r.failures++ }
func (r *recorder) Fatalf(string, ...any) { r.failures++ }

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		err  error
		good bool
	}{
		{errors.New("use the option User"), true},
		{nil, false},
		{errors.New("no"), false},
		{errors.New(`use the option User instead of "guess"`), false},
		{fmt.Errorf("use the option User: %w", context.DeadlineExceeded), false},
	} {
		r := &recorder{TB: t}
		regtest.Refused(r, "Register", test.err, "use the option", "guess")
		if (r.failures == 0) != test.good {
			t.Errorf("%v: %d failures, want none: %v", test.err, r.failures, test.good)
		}
	}
}

func TestWatch(t *testing.T) {
	m := registry.NewMemory()
	r := &recorder{TB: t}
	w := regtest.NewWatch(r, m)
	w.Expect("")
	regtest.Register(t, m, regtest.Instance("h1:1"), regtest.Instance("h2:1"))
	w.Await("h1:1 h2:1")
	if got := regtest.Addresses(t, m); got != "h1:1 h2:1" {
		t.Errorf("the list is %q", got)
	}
	w.NoTrouble()
	w.Troubles <- errors.New("away")
	w.ExpectTrouble("away")
	w.Troubles <- errors.New("full")
	w.Troubles <- errors.New("away")
	w.AwaitTrouble("away")
	if r.failures != 0 {
		t.Errorf("%d failures, want none", r.failures)
	}
	w.Troubles <- errors.New("full")
	w.ExpectTrouble("away")
	w.Troubles <- errors.New("full")
	w.NoTrouble()
	w.Lists <- "h1:1"
	w.Expect("h2:1")
	if r.failures != 3 {
		t.Errorf("%d failures, want 3", r.failures)
	}
}

func TestBack(t *testing.T) {
	r := &recorder{TB: t}
	losses := 0
	lose := func() { losses++ }
	regtest.Back(r, regtest.BackWithin, "it", lose, func() bool { return true })
	if losses != 1 || r.failures != 0 {
		t.Errorf("%d losses and %d failures of what comes back at once, want 1 and none", losses, r.failures)
	}
	losses = 0
	regtest.Back(r, -1, "it", lose, func() bool { return true })
	if losses != 3 || r.failures != 1 {
		t.Errorf("%d losses and %d failures of what comes back too late, want 3 and 1", losses, r.failures)
	}
}

func TestTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		slow := errors.New("refused")
		regtest.TimesOut(r, "Register", "refused", func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(5 * time.Second): // until it knows the cause
			}
			<-ctx.Done()
			return fmt.Errorf("%w: %w", ctx.Err(), slow)
		})
		if r.failures != 0 {
			t.Errorf("%d failures of a call that says why when it has the time, want none", r.failures)
		}
		for i, err := range []error{nil, slow, context.DeadlineExceeded} {
			regtest.TimesOut(r, "Register", "refused", func(context.Context) error { return err })
			if r.failures != i+1 {
				t.Errorf("%d failures after a call that returns %v, want %d", r.failures, err, i+1)
			}
		}
	})
}

func TestSeen(t *testing.T) {
	w := regtest.NewWatch(t, registry.NewMemory())
	w.Expect("")
	w.Lists <- "h1:1"
	w.Lists <- "h2:1"
	w.Lists <- "h3:1"
	if !w.Seen("h2:1") || w.Seen("h2:1") || len(w.Lists) != 0 {
		t.Errorf("h2:1 was not seen, or twice, or %d lists are left", len(w.Lists))
	}
}
