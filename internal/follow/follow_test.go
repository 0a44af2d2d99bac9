package follow

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRead(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	read := func(a, b string) ([][]byte, Digest) {
		t.Helper()
		for name, text := range map[string]string{one: a, two: b} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		contents, sum, err := Read([]string{one, two})
		if err != nil {
			t.Fatal(err)
		}
		return contents, sum
	}
	contents, sum := read("ab", "c")
	if string(contents[0]) != "ab" || string(contents[1]) != "c" {
		t.Errorf("Read = %q", contents)
	}
	if _, again := read("ab", "c"); again != sum {
		t.Error("the same contents have another digest")
	}
	if _, other := read("a", "bc"); other == sum {
		t.Error("a byte that goes from one file to the next does not count")
	}
	if _, _, err := Read([]string{one, filepath.Join(dir, "three")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of a file that is not there = %v", err)
	}
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		p := Every(time.Second, func() { looks++ })
		time.Sleep(3500 * time.Millisecond)
		p.Close()
		p.Close()
		if looks != 3 {
			t.Errorf("%d looks in 3.5 s, want 3", looks)
		}
		time.Sleep(10 * time.Second)
		if looks != 3 {
			t.Error("a look after Close")
		}
	})
}
