//go:build unix

package filetransfer

import "syscall"

// openFlags keep a pipe that takes the place of a file from blocking whoever opens it.
const openFlags = syscall.O_NONBLOCK
