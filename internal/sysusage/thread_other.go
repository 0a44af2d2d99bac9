//go:build !linux

package sysusage

// CurrentThread returns the zero value: the usage of a thread is not known here.
func CurrentThread() Thread { return Thread{} }
