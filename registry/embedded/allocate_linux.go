package embedded

import (
	"errors"
	"os"
	"syscall"
)

// allocate reserves disk blocks for the first bytes of the file, whose content stays unchanged. On
// file systems that do not support it, it does nothing.
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
