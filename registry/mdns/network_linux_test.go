package mdns_test

import "syscall"

// ownNetwork has a process start in a network namespace of its own.
func ownNetwork() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
}
