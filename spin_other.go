//go:build !unix

package anser

import "errors"

const canSpin = false

func readNonblocking(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

func wouldBlock(error) bool { return false }
