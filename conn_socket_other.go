//go:build !unix

package anser

import "net"

// socket is not to be had here; see conn_socket_unix.go.
type socket struct{}

func newSocket(net.Conn) *socket { return nil }

func (*socket) try([]byte) (taken int, err error) { panic("there is no socket") }
