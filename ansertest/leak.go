package ansertest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// CheckLeaks fails the test if at its end goroutines are there that were not when CheckLeaks was
// called, and shows them. Functions given to t.Cleanup later than this run before the check. It is not
// for parallel tests, which see each other's goroutines, and not needed inside synctest.Test, which
// does the same. Goroutines that are about to end have half a minute for that.
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

// Main runs the tests of a package, for its TestMain, and fails if a goroutine is left at the end, as CheckLeaks
// does. It does not return.
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

// leakPatience is how long goroutines may take to end. On a machine that is busy with other things one that has been
// told to may not get a processor in the half second that goleak waits.
const leakPatience = 30 * time.Second

// leaks looks for goroutines until there are none or the time is over.
func leaks(options ...goleak.Option) error {
	for end := time.Now().Add(leakPatience); ; {
		if err := goleak.Find(options...); err == nil || time.Now().After(end) {
			return err
		}
	}
}
