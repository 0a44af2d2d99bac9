//go:build !linux

package load

import "time"

func precise() {}

func nap(d time.Duration) { time.Sleep(d) }
