// Package example checks that an example prints the output shown in its README.
package example

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Check runs an example and compares its output with the block of README.md that begins with
// "```text". It runs in the folder of the example, for a few minutes at most. No goroutine of the
// example may be left.
func Check(t *testing.T, run func(out io.Writer) error) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "\n```text\n")
	want, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("README.md has no block ```text with the expected output")
	}
	stuck := time.AfterFunc(5*time.Minute, func() { panic("the example does not end") })
	defer stuck.Stop()
	var out bytes.Buffer
	if err := run(&out); err != nil {
		t.Errorf("the example fails: %v", err)
	}
	if got := out.String(); got != want {
		t.Errorf("the example prints\n%s\nREADME.md promises\n%s", got, want)
	}
	checkLeaks(t, before)
}

// checkLeaks fails the test if goroutines are left. Those between the members of a cluster of etcd end after five seconds.
func checkLeaks(t *testing.T, before goleak.Option) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		err := goleak.Find(before)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Error(err)
			return
		}
	}
}
