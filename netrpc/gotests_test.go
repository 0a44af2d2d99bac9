package netrpc_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Go's own tests of net/rpc and net/rpc/jsonrpc pass with this package in their imports. They are
// taken from the Go installation that runs the test.
func TestGosOwnTests(t *testing.T) {
	const ours = "github.com/anser-rpc/anser/netrpc"
	for _, c := range []struct{ folder, imports string }{
		// They use the package without its name, since they are part of it.
		{"net/rpc", `import . "` + ours + `"`},
		{"net/rpc/jsonrpc", `import . "` + ours + `/jsonrpc"`},
	} {
		t.Run(c.folder, func(t *testing.T) {
			t.Parallel()
			from := filepath.Join(goroot(t), "src", filepath.FromSlash(c.folder))
			files, err := filepath.Glob(filepath.Join(from, "*_test.go"))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s has no tests (%v): this needs a Go with its sources", from, err)
			}
			// Inside this module, so that they find the package. The contents of testdata are not
			// part of ./...
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			dir, err := os.MkdirTemp("testdata", "gotests-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			for _, file := range files {
				source, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				changed := strings.Replace(string(source), "\nimport (", "\n"+c.imports+"\n\nimport (", 1)
				changed = strings.Replace(changed, "\t\"net/rpc\"\n", "\trpc \""+ours+"\"\n", 1)
				if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(changed), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{"test", "-count=1", "-v", "-timeout=120s"}
			if raceEnabled {
				args = append(args, "-race")
			}
			cmd := exec.CommandContext(t.Context(), "go", append(args, "./"+filepath.ToSlash(dir))...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %v\n%s", cmd, err, out)
			}
			t.Logf("%d tests pass, %d are skipped", bytes.Count(out, []byte("\n--- PASS")), bytes.Count(out, []byte("\n--- SKIP")))
		})
	}
}

func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
