//go:build unix

package sysconn

import (
	"net"
	"os"
	"syscall"
)

// Pending returns the connections of a listener of TCP that are not accepted yet, without waiting.
// When a listener is closed, the system resets them.
func Pending(l net.Listener) (conns []net.Conn) {
	tl, ok := l.(*net.TCPListener)
	if !ok {
		return nil
	}
	raw, err := tl.SyscallConn()
	if err != nil {
		return nil
	}
	raw.Control(func(fd uintptr) {
		for {
			n, _, err := syscall.Accept(int(fd))
			if err == syscall.EINTR || err == syscall.ECONNABORTED {
				continue
			}
			if err != nil {
				return // there is none
			}
			syscall.CloseOnExec(n)
			f := os.NewFile(uintptr(n), "")
			nc, err := net.FileConn(f) // which duplicates it
			f.Close()
			if err == nil {
				conns = append(conns, nc)
			}
		}
	})
	return conns
}
