//go:build unix && !linux

package sysconn

import "syscall"

// LimitUnsent does nothing on this platform.
func (*Writer) LimitUnsent(int) {}

// writeBoth writes head, which is not empty. The caller goes on with the rest.
func writeBoth(fd uintptr, head, _ []byte) (n int, err error) { return syscall.Write(int(fd), head) }
