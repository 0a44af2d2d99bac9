//go:build !linux

package main

import "errors"

var errNoMount = errors.New("only Linux has it")

func mountMemory(string, int64) error { return errNoMount }

func unmount(string) error { return errNoMount }
