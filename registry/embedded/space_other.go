//go:build !(linux || darwin || freebsd)

package embedded

// freeSpace is not supported on this platform: the guard does nothing.
func freeSpace(string) (free int64, ok bool) { return 0, false }
