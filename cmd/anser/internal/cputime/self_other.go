//go:build !unix

package cputime

import "time"

// Self returns what this process has used.
func Self() (time.Duration, error) { return 0, ErrUnknown }
