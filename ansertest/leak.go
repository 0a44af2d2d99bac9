package ansertest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// CheckLeaks fails the test if goroutines started after this call are still running at the end of
// the test, and prints their stacks. Functions passed to t.Cleanup after this call run before the
// check. It must not be used in parallel tests, which see each other's goroutines, and is not
// needed inside synctest.Test, which has the same check. Goroutines have half a minute to end.
func CheckLeaks(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		t.Helper()
		if err := leaks(before); err != nil {
			t.Error(err)
		}
	})
}

// Main runs the tests of a package, for its TestMain, and fails if a goroutine is left at the end,
// like CheckLeaks. It does not return.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := leaks(); err != nil {
			fmt.Fprintln(os.Stderr, "the tests succeeded, but:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// leakPatience is how long goroutines may take to end. On a busy machine a goroutine may not be
// scheduled within the half second that goleak waits.
const leakPatience = 30 * time.Second

// leaks searches for goroutines until there are none or the time is over.
func leaks(options ...goleak.Option) error {
	for end := time.Now().Add(leakPatience); ; {
		if err := goleak.Find(options...); err == nil || time.Now().After(end) {
			return err
		}
	}
}
