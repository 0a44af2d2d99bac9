package repo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/repo"
)

func TestRoot(t *testing.T) {
	above := t.TempDir()
	if err := os.WriteFile(filepath.Join(above, "arena"), nil, 0o644); err != nil { // not a folder
		t.Fatal(err)
	}
	root := filepath.Join(above, "clone")
	deep := filepath.Join(root, "arena", "peers", "x")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Root(deep); err == nil || !strings.Contains(err.Error(), "run this inside a clone of Anser") {
		t.Errorf("without a contract: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "arena", "CONTRACT.md"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, filepath.Join(root, "arena"), deep} {
		if got, err := repo.Root(dir); got != root || err != nil {
			t.Errorf("of %s: %s, %v", dir, got, err)
		}
	}
}

func TestCommit(t *testing.T) {
	root := t.TempDir()
	if got := repo.Commit(t.Context(), root, ""); got != "unknown" {
		t.Errorf("without a repository: %s", got)
	}
	git := func(args ...string) string {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	file := filepath.Join(root, "a")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	write(file, "1")
	git("add", "a")
	git("commit", "-qm", "one")
	want := git("rev-parse", "--short=12", "HEAD")
	write(filepath.Join(root, "results.json"), "") // what git does not know changes nothing
	if got := repo.Commit(t.Context(), root, ""); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	write(file, "2")
	changed := repo.Commit(t.Context(), root, "")
	if !strings.HasPrefix(changed, want+"+") || len(changed) != len(want)+1+8 {
		t.Errorf("with a change: %s, want %s+ and a hash", changed, want)
	}
	write(file, "3")
	if got := repo.Commit(t.Context(), root, ""); got == changed || !strings.HasPrefix(got, want+"+") {
		t.Errorf("two changes have one name: %s", got)
	}
	write(file, "2")
	if got := repo.Commit(t.Context(), root, file); got != want {
		t.Errorf("with a change of the result only: %s, want %s", got, want)
	}
	if got := repo.Commit(t.Context(), root, filepath.Join(t.TempDir(), "b")); got != changed {
		t.Errorf("with a result elsewhere: %s, want %s", got, changed)
	}
}
