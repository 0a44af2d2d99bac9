package filelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/anser-rpc/anser/internal/filelock"
)

func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := open(), open()
	defer second.Close()
	if ok, err := filelock.Try(first); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := filelock.Try(second); ok == filelock.Works || err != nil {
		t.Errorf("a locked file: %v, %v", ok, err)
	}
	first.Close()
	if ok, err := filelock.Try(second); !ok || err != nil {
		t.Errorf("after the end of the lock: %v, %v", ok, err)
	}
}
