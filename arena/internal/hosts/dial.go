package hosts

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Dial connects to an address as a process on a host would, and closes the connection at once. An
// empty host is this one.
func Dial(host, address string, timeout time.Duration) error {
	if host == "" {
		c, err := net.DialTimeout("tcp", address, timeout)
		if err == nil {
			c.Close()
		}
		return err
	}
	result := make(chan error, 1)
	go func() {
		// The thread belongs to the other namespace from here on. It is never unlocked, so that it
		// ends with this goroutine instead of running others.
		runtime.LockOSThread()
		result <- dialInside(host, address, timeout)
	}()
	return <-result
}

func dialInside(host, address string, timeout time.Duration) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	namespace, err := os.Open("/run/netns/" + host)
	if err != nil {
		return fmt.Errorf("there is no host %s: %w", host, err)
	}
	defer namespace.Close()
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the namespace %s: %w", host, err)
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	limit := unix.NsecToTimeval(timeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
		return err
	}
	return unix.Connect(socket, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
}
