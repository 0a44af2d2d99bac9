//go:build unix

package doctor

import "golang.org/x/sys/unix"

// descriptors returns how many files a process may open: Go raises the limit of each process to
// the hard one.
func descriptors() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Max)
}
