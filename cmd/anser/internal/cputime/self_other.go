//go:build !unix

package cputime

import "time"

// Self returns the CPU time of this process.
func Self() (time.Duration, error) { return 0, ErrUnknown }
