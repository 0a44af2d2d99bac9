package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What a group says is understood in both versions, and a group without a controller of memory is
// told from others.
func TestMemoryGroup(t *testing.T) {
	for _, v := range groupVersions {
		g := &memoryGroup{t.TempDir(), v}
		if err := g.limit(1 << 20); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no controller of memory: %v", err)
		}
		put := func(name, text string) {
			if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		put(v.limit, "")
		put(v.events, "under_oom 0\noom 5\noom_kill 3\noom_group_kill 0\n")
		if err := g.limit(1 << 20); err != nil {
			t.Errorf("swapped memory is not counted: %v", err)
		}
		put(v.swap, "")
		if err := g.limit(1 << 20); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(filepath.Join(g.dir, v.limit)); err != nil || string(text) != "1048576" {
			t.Errorf("the limit is %q, %v", text, err)
		}
		if peak, kills, err := g.used(); peak != 0 || kills != 3 || err != nil {
			t.Errorf("without a peak: %d, %d, %v", peak, kills, err)
		}
		put(v.peak, "4096\n")
		if peak, kills, err := g.used(); peak != 4096 || kills != 3 || err != nil {
			t.Errorf("with a peak: %d, %d, %v", peak, kills, err)
		}
	}
}
