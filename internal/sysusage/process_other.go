//go:build !unix

package sysusage

// CurrentProcess returns the zero value: the usage of the process is not known here.
func CurrentProcess() Process { return Process{} }
