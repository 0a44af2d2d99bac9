//go:build !unix

package anser_test

import "time"

// processorTime returns 0: the time is not known on this system.
func processorTime() time.Duration { return 0 }
