package say

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // cannot fail for the process itself
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// residentBytes returns how much memory of this process is in RAM.
func residentBytes() (int64, error) {
	data, err := os.ReadFile("/proc/self/statm")
	if os.IsNotExist(err) {
		return 0, nil // not Linux: the memory is not known
	}
	if err != nil {
		return 0, err
	}
	var size, resident int64
	if _, err := fmt.Fscan(bytes.NewReader(data), &size, &resident); err != nil {
		return 0, fmt.Errorf("/proc/self/statm: %w", err)
	}
	return resident * int64(os.Getpagesize()), nil
}
