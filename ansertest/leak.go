package ansertest

import (
	"testing"

	"go.uber.org/goleak"
)

// CheckLeaks fails the test if at its end goroutines are there that were not when CheckLeaks was
// called, and shows them. Functions given to t.Cleanup later than this run before the check. It is not
// for parallel tests, which see each other's goroutines, and not needed inside synctest.Test, which
// does the same.
func CheckLeaks(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// Main runs the tests of a package, for its TestMain, and fails if a goroutine is left at the end. It
// does not return.
func Main(m *testing.M) { goleak.VerifyTestMain(m) }
