//go:build (!linux && !darwin) || mips || mipsle || mips64 || mips64le

package sysconn

import (
	"errors"
	"runtime"
	"syscall"
)

// ReusePort is for net.ListenConfig.
func ReusePort(_, _ string, _ syscall.RawConn) error {
	return errors.New("anser.ReusePort is not supported on " + runtime.GOOS + "/" + runtime.GOARCH + ": leave the option out and give each process an address of its own")
}
