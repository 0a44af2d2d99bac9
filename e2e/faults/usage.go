package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ownUsage returns the processor time that this process has used, and how many bytes of it are in
// memory. The latter are 0 where /proc does not tell.
func ownUsage() (cpu time.Duration, resident int64, err error) {
	if cpu, err = ownCPU(); err != nil {
		return 0, 0, err
	}
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

// ownCPU returns the processor time that this process has used.
func ownCPU() (time.Duration, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, err
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}

// ownPeak returns the most bytes of this process that were in memory at a time, 0 where /proc does
// not tell. That of getrusage would begin with the memory of the process that started this one.
func ownPeak() int64 {
	kib, _, _ := strings.Cut(field("/proc/self/status", "VmHWM"), " ")
	n, err := strconv.ParseInt(kib, 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
