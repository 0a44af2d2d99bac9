//go:build unix && !linux

package child

import "syscall"

// attributes puts a child into its own process group, so that Ctrl-C reaches only the parent,
// which ends its children in order.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
