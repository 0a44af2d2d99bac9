// Package hoststest is for tests that make the two hosts. A machine has them once, and go test
// runs several packages at a time.
package hoststest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Lock keeps the hosts for a test until it ends.
func Lock(t testing.TB) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(os.TempDir(), "arena-hosts-test.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	for {
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}
