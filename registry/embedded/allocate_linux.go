package embedded

import (
	"errors"
	"os"
	"syscall"
)

// allocate gives the file blocks on the disk for its first bytes, which stay what they are. Where the file
// system cannot do that, it does nothing.
func allocate(file string, bytes int64) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	err = syscall.Fallocate(int(f.Fd()), 0, 0, bytes)
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return nil
	}
	return err
}
