// Package sysusage reads what threads and the process have used of the machine.
package sysusage

// Thread is what a thread has used. The zero value is one that was not read.
type Thread struct {
	ID        int
	CPU       int64 // nanoseconds
	Preempted int64 // involuntary switches
	Waited    int64 // voluntary switches
}

// Process is what the process has used. The zero value is one that was not read.
type Process struct {
	CPU       int64 // nanoseconds
	Preempted int64 // involuntary switches: how often the operating system took a processor away
}
