//go:build unix

package filetransfer

import "syscall"

// openFlags prevent opening a path from blocking if it was replaced by a pipe.
const openFlags = syscall.O_NONBLOCK
