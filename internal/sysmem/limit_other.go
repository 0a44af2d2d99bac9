//go:build !linux

// Package sysmem determines how much memory the process may use.
package sysmem

import "math"

// Limit returns math.MaxInt64: the limit is unknown on this platform.
func Limit() int64 { return math.MaxInt64 }
