//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package registry

import (
	"errors"
	"io/fs"
	"os"
)

// Nothing removes the lock file of a process that dies.
const staleLockAdvice = " (if there is none, delete it)"

// tryLockFile returns nil and no error while another process holds the lock. On this platform, the
// lock is held while the file exists.
func tryLockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil // Windows returns a permission error while the file is being removed
	}
	if err != nil {
		return nil, err
	}
	file.Close()
	return func() { os.Remove(path) }, nil
}
