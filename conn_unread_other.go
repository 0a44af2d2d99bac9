//go:build !linux

package anser

import "net"

// unread is for systems that are not asked.
type unread struct{}

func newUnread(net.Conn) (unread, bool) { return unread{}, false }

func (unread) bytes() int { return 0 }
