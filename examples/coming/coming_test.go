package coming_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var frameworks = []string{"netrpc", "rpcx", "grpc", "kitex"}

// The two programs of each framework have the same output.
func TestPrograms(t *testing.T) {
	for _, name := range frameworks {
		t.Run(name, func(t *testing.T) {
			before, after := output(t, name+"/before"), output(t, name+"/after")
			if before != after || before == "" {
				t.Errorf("before it prints %q, after it %q", before, after)
			}
		})
	}
}

// output builds and runs a program, and returns its output.
func output(t *testing.T, folder string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+folder)
	build.Env = append(os.Environ(), "GOWORK=off") // this module is not in the workspace
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", folder, err, text)
	}
	cmd := exec.CommandContext(t.Context(), program)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("run %s: %v\n%s", folder, err, &errOut)
	}
	return string(text)
}

// The pages show the programs unchanged.
func TestPagesShowThePrograms(t *testing.T) {
	for _, name := range frameworks {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "from-"+name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		page := string(text)
		for _, when := range []string{"before", "after"} {
			file := filepath.Join(name, when, "main.go")
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(page, "\n```go\n"+string(source)+"```\n") {
				t.Errorf("docs/from-%s.md does not show %s as it is: copy the file into its block", name, file)
			}
		}
		if n := strings.Count(page, "\n```go\n"); n != 2 {
			t.Errorf("docs/from-%s.md has %d blocks of Go: want the two programs, which are built", name, n)
		}
	}
}
