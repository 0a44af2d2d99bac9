package layout_test

import (
	"os"
	"os/exec"
	"testing"
)

// TestFailures checks what scripts/failures finds in the output of go test.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"excerpts", nil, "testdata/failures/excerpts"},
		{"tests", []string{"--tests"}, "testdata/failures/tests"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			output, err := os.Open("testdata/failures/output")
			if err != nil {
				t.Fatal(err)
			}
			defer output.Close()
			want, err := os.ReadFile(tt.want)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("../../scripts/failures", tt.args...)
			cmd.Stdin, cmd.Stderr = output, os.Stderr
			if got, err := cmd.Output(); err != nil || string(got) != string(want) {
				t.Errorf("error %v and this output:\n%s\nwant:\n%s", err, got, want)
			}
		})
	}
}
