package servers

import (
	"os"
	"slices"
	"testing"
)

// Servers are stopped after the last test, in reverse order, and if start fails no test runs.
func TestRunTests(t *testing.T) {
	var order []string
	say := func(what string) { order = append(order, what) }
	var dir string
	code := runTests(func() int { say("tests"); return 3 }, func(t testing.TB) {
		dir = t.TempDir()
		t.Cleanup(func() { say("first") })
		t.Cleanup(func() { say("second") })
	})
	if want := []string{"tests", "second", "first"}; code != 3 || !slices.Equal(order, want) {
		t.Errorf("code %d after %q, want 3 after %q", code, order, want)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is still there")
	}
	order = nil
	code = runTests(func() int { say("tests"); return 0 }, func(t testing.TB) {
		t.Cleanup(func() { say("first") })
		t.Fatalf("this server is %s", "not here")
	})
	if want := []string{"first"}; code != 1 || !slices.Equal(order, want) {
		t.Errorf("code %d after %q, want 1 after %q", code, order, want)
	}
}
