//go:build unix && !linux

package child

import "syscall"

// attributes put a child into a process group of its own, so that Ctrl-C reaches the parent alone,
// which ends its children in order.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
