package build_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/build"
	"github.com/anser-rpc/anser/arena/internal/need"
	"github.com/anser-rpc/anser/arena/internal/peer"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func repository(t *testing.T) (*build.Builder, *peer.Folder) {
	root := t.TempDir()
	f := &peer.Folder{
		Name: "f", Path: filepath.Join(root, "arena/peers/f"), Language: "go", Needs: []string{"sh"}, Inputs: []string{"core", "*.mod"},
		Build: [][]string{{"sh", "-c", "echo $GOWORK >> {out}/log"}, {"sh", "-c", "cat main.txt >> {out}/log"}},
	}
	write(t, filepath.Join(f.Path, "main.txt"), "one\n")
	write(t, filepath.Join(root, "core/deep/a"), "a")
	write(t, filepath.Join(root, "x.mod"), "a")
	write(t, filepath.Join(root, "arena/workload/a"), "a")
	return &build.Builder{Root: root, Cache: t.TempDir(), Tools: new(need.Checker)}, f
}

func TestBuild(t *testing.T) {
	b, f := repository(t)
	log := func() string {
		text, err := os.ReadFile(filepath.Join(b.Out(f), "log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	expect := func(why string, want bool) {
		t.Helper()
		if current, err := b.Current(f); err != nil || current == want {
			t.Errorf("%s: current is %v, %v", why, current, err)
		}
		if built, err := b.Build(t.Context(), f); err != nil || built != want {
			t.Errorf("%s: built is %v, %v", why, built, err)
		}
	}
	expect("the first time", true)
	if got := log(); got != "off\none\n" {
		t.Errorf("the build wrote %q", got)
	}
	expect("again", false)
	write(t, filepath.Join(f.Path, "main.txt"), "two\n")
	expect("a source changed", true)
	if got := log(); got != "off\none\noff\ntwo\n" { // what was built is kept
		t.Errorf("the builds wrote %q", got)
	}
	for _, input := range []string{"core/deep/a", "core/deep/new", "x.mod", "y.mod", "arena/workload/a"} {
		write(t, filepath.Join(b.Root, input), "changed")
		expect(input, true)
	}
	for _, other := range []string{"other/a", "core/a_test.go", "arena/peers/f/.hidden/a", "arena/java/a"} {
		write(t, filepath.Join(b.Root, other), "changed")
		expect(other, false)
	}
}

func TestBuildFails(t *testing.T) {
	b, f := repository(t)
	if _, err := b.Build(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	f.Build = [][]string{{"sh", "-c", "echo said; echo shouted >&2; exit 7"}}
	write(t, filepath.Join(f.Path, "main.txt"), "two\n")
	_, err := b.Build(t.Context(), f)
	var failed *build.Error
	if !errors.As(err, &failed) || failed.Said != "said\nshouted\n" || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("%v, %+v", err, failed)
	}
	write(t, filepath.Join(f.Path, "main.txt"), "one\n") // as it was built, but that build is gone
	if current, err := b.Current(f); current || err != nil {
		t.Errorf("after a build that failed: current is %v, %v", current, err)
	}
	f.Build = [][]string{{"no-such-program"}}
	if _, err := b.Build(t.Context(), f); !errors.As(err, &failed) {
		t.Errorf("a program that is not there: %v", err)
	}
}

// A build that is interrupted ends with what it started, and does not look finished.
func TestBuildInterrupted(t *testing.T) {
	b, f := repository(t)
	f.Build = [][]string{{"sh", "-c", "touch {out}/began; sleep 1000 & wait"}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(b.Out(f), "began")); err == nil {
				cancel()
			}
		}
	}()
	if built, err := b.Build(ctx, f); err == nil || built {
		t.Errorf("built is %v, %v", built, err)
	}
	if current, err := b.Current(f); current || err != nil {
		t.Errorf("current is %v, %v", current, err)
	}
}

// While one process builds a folder, another one waits, and then finds it built.
func TestBuildAtOnce(t *testing.T) {
	b, f := repository(t)
	results := make(chan bool, 4)
	for range cap(results) {
		other := &build.Builder{Root: b.Root, Cache: b.Cache, Tools: new(need.Checker)}
		go func() {
			built, err := other.Build(context.Background(), f)
			if err != nil {
				t.Error(err)
			}
			results <- built
		}()
	}
	n := 0
	for range cap(results) {
		if <-results {
			n++
		}
	}
	if n != 1 {
		t.Errorf("built %d times", n)
	}
}

func TestCache(t *testing.T) {
	t.Setenv(build.Variable, "/somewhere")
	if folder, err := build.Cache(); folder != "/somewhere" || err != nil {
		t.Errorf("%q, %v", folder, err)
	}
	t.Setenv(build.Variable, "")
	t.Setenv("XDG_CACHE_HOME", "/cache")
	if folder, err := build.Cache(); folder != "/cache/anser-arena" || err != nil {
		t.Errorf("%q, %v", folder, err)
	}
}

func TestExpand(t *testing.T) {
	b := &build.Builder{Cache: "/c"}
	got := b.Expand(&peer.Folder{Name: "f"}, []string{"{out}/f", "-cp", "{out}/a:{out}/b"})
	if strings.Join(got, " ") != "/c/f/f -cp /c/f/a:/c/f/b" {
		t.Errorf("%q", got)
	}
}
