// Package systemd uses the sockets that systemd has opened for the process (socket activation),
// and reports the state of the process to systemd.
//
//	listeners, err := systemd.Listeners()
//	…
//	for _, l := range listeners {
//		go server.Serve(l)
//	}
//	systemd.Notify(systemd.Ready)
//
// So a service starts on its first connection, and none is refused while it restarts: they wait in
// the queue of the socket, which belongs to systemd.
package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// firstFD is the first descriptor that systemd passes.
const firstFD = 3

// Listener is a socket that systemd opened.
type Listener struct {
	net.Listener
	// Name is the FileDescriptorName of the socket's unit, by default the name of the unit.
	Name string
}

// Unwrap returns the listener of package net, for code that needs a *net.TCPListener.
func (l Listener) Unwrap() net.Listener { return l.Listener }

// Listeners returns the sockets in the order of their descriptors, which are closed with the
// listeners. It returns none, and no error, if systemd has not started the process by socket
// activation. The variables LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES are removed, so that child
// processes do not use them; a second call returns none.
func Listeners() ([]Listener, error) {
	pid, count, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	for _, v := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(v)
	}
	if count == "" || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > 1<<16 {
		return nil, fmt.Errorf("systemd: LISTEN_FDS is %q: want the number of sockets", count)
	}
	var list []Listener
	named := strings.Split(names, ":")
	for i := range n {
		l := Listener{}
		if i < len(named) {
			l.Name = named[i]
		}
		f := os.NewFile(uintptr(firstFD+i), l.Name)
		l.Listener, err = net.FileListener(f) // a copy that child processes do not inherit
		f.Close()
		if err != nil {
			for _, l := range list {
				l.Close()
			}
			return nil, fmt.Errorf("systemd: socket %d (%q): %w: want ListenStream= in its unit", i, l.Name, err)
		}
		list = append(list, l)
	}
	return list, nil
}

// States for Notify; systemd's sd_notify(3) has more.
const (
	Ready     = "READY=1"     // the service is ready for calls
	Reloading = "RELOADING=1" // its configuration is being reloaded
	Stopping  = "STOPPING=1"  // it is draining
	Watchdog  = "WATCHDOG=1"  // it is alive
)

// Notify reports the state of a service of Type=notify to systemd. Several states are separated by
// newlines, and "STATUS=…" is a text for people. It does nothing if systemd does not expect
// notifications.
func Notify(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	if path[0] != '/' && path[0] != '@' {
		return errors.New("systemd: NOTIFY_SOCKET is not a path: " + path)
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("systemd: %w", err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(state)); err != nil {
		return fmt.Errorf("systemd: %w", err)
	}
	return nil
}
