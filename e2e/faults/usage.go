package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ownUsage returns the processor time that this process has used, and how many bytes of it are in memory.
// The latter are 0 where /proc does not tell.
func ownUsage() (cpu time.Duration, resident int64, err error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, 0, err
	}
	cpu = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	data, err := os.ReadFile("/proc/self/statm")
	if os.IsNotExist(err) {
		return cpu, 0, nil
	}
	if err != nil {
		return cpu, 0, err
	}
	var size, pages int64
	if _, err := fmt.Fscan(bytes.NewReader(data), &size, &pages); err != nil {
		return cpu, 0, fmt.Errorf("/proc/self/statm: %w", err)
	}
	return cpu, pages * int64(os.Getpagesize()), nil
}
