package regtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a test that counts its failures, and goes on.
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
