//go:build unix

package anser

import (
	"errors"
	"syscall"
)

const canSpin = true

// readNonblocking reads what is there; the descriptors of package net do not block.
func readNonblocking(fd uintptr, buf []byte) (int, error) { return syscall.Read(int(fd), buf) }

func wouldBlock(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
}
