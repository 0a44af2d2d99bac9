package sysmem

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The lowest limit of a group and its ancestors applies; in a container only the root exists.
func TestCgroupLimit(t *testing.T) {
	mount := t.TempDir()
	write := func(dir, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(mount, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(mount, dir, "memory.max"), []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n := cgroupLimit(mount, "/a/b", "memory.max"); n != math.MaxInt64 {
		t.Errorf("%d without a file", n)
	}
	write("/", "1000000")
	if n := cgroupLimit(mount, "/a/b", "memory.max"); n != 1_000_000 {
		t.Errorf("%d with the root alone", n)
	}
	write("/a/b", "max")
	write("/a", "500000")
	if n := cgroupLimit(mount, "/a/b", "memory.max"); n != 500_000 {
		t.Errorf("%d, want that of the group above", n)
	}
	write("/a/b", "400000")
	if n := cgroupLimit(mount, "/a/b/", "memory.max"); n != 400_000 {
		t.Errorf("%d, want that of the group", n)
	}
}
