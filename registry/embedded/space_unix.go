//go:build linux || darwin || freebsd

package embedded

import "syscall"

// freeSpace returns the number of free bytes in the file system of dir.
func freeSpace(dir string) (free int64, ok bool) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, false
	}
	return int64(stat.Bavail) * int64(stat.Bsize), true
}
