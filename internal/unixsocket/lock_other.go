//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package unixsocket

// lock does nothing: this system has no flock.
func lock(string) (unlock func(), err error) { return func() {}, nil }
