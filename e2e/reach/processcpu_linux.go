package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// processCPU returns the processor time that another process has used, in seconds. The clock is
// the one that clock_getcpuclockid(3) names.
func processCPU(pid int) (float64, error) {
	const ofProcess = 2 // CPUCLOCK_SCHED
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofProcess), &t); err != nil {
		return 0, fmt.Errorf("the processor time of the process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()).Seconds(), nil
}
