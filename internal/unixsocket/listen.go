// Package unixsocket listens on unix sockets that a process that died may have left behind.
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// Listen listens on the unix socket at path, or in Linux' abstract namespace on "@name". The socket
// of a process that died stays in its folder; only connecting distinguishes it from one that is
// served: it refuses. Listen replaces it.
//
// Between bind and listen a new socket refuses too. So that two servers that start together do not
// replace each other's socket, each holds a lock from before it looks until it listens.
func Listen(path string) (net.Listener, error) {
	if path == "" {
		return nil, errors.New("the address has no path: use unix:///path")
	}
	if path[0] == '@' { // an abstract name ends with its process
		return net.Listen("unix", path)
	}
	unlock, err := lock(path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	l, err := net.Listen("unix", path)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	if err := removeDead(path); err != nil {
		return nil, err
	}
	return net.Listen("unix", path)
}

// patience is how long a server waits for another one that looks at the same socket.
const patience = 5 * time.Second

// removeDead removes the socket if no process listens on it.
func removeDead(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // its server has ended in the meantime
	}
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("%s is there and no socket: use another path, or remove it", path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	nc, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		nc.Close()
		return fmt.Errorf("%s is served by another process: stop it, or use another path: %w", path, syscall.EADDRINUSE)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%s is there, and whether a process serves it cannot be found out: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the socket of a process that has ended is there: %w", err)
	}
	return nil
}
