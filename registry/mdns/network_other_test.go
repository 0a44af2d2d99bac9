//go:build !linux

package mdns_test

import "syscall"

func ownNetwork() *syscall.SysProcAttr { return nil }
