//go:build !linux

package doctor_test

func runsAlone() bool { return false }
