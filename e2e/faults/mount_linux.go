package main

import (
	"fmt"
	"syscall"
)

// mountMemory puts a file system in memory over the folder.
func mountMemory(dir string, bytes int64) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
}

func unmount(dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) }
