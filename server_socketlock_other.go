//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package anser

// lockSocket does nothing: this system has no flock.
func lockSocket(string) (unlock func(), err error) { return func() {}, nil }
