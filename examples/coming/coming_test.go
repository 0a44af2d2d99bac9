package coming_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programs has the programs of each framework, with the one that is without Anser first.
var programs = map[string][]string{
	"netrpc":  {"before", "after"},
	"rpcx":    {"before", "after", "move"},
	"grpc":    {"before", "after", "stubs"},
	"connect": {"before", "after"},
	"kitex":   {"before", "after", "structs"},
}

// The programs of a framework have the same output.
func TestPrograms(t *testing.T) {
	for name, folders := range programs {
		t.Run(name, func(t *testing.T) {
			before := output(t, name+"/before")
			if before == "" {
				t.Error("before prints nothing")
			}
			for _, folder := range folders[1:] {
				if text := output(t, name+"/"+folder); text != before {
					t.Errorf("before prints %q, %s prints %q", before, folder, text)
				}
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
	for name, folders := range programs {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "from-"+name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		page := string(text)
		for _, folder := range folders {
			file := filepath.Join(name, folder, "main.go")
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(page, "\n```go\n"+string(source)+"```\n") {
				t.Errorf("docs/from-%s.md does not show %s as it is: copy the file into its block", name, file)
			}
		}
		if n := strings.Count(page, "\n```go\n"); n != len(folders) {
			t.Errorf("docs/from-%s.md has %d blocks of Go: want the %d programs, which are built", name, n, len(folders))
		}
	}
}
