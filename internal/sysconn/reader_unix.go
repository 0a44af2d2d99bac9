//go:build unix

package sysconn

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// Reader reads a connection, and waits for bytes without a buffer. Not safe for concurrent use, but
// for Silent.
type Reader struct {
	raw  syscall.RawConn
	to   Room
	read func(fd uintptr) bool // readOnce, as a value that is created once

	// State of a read.
	n   int
	err error

	lost atomic.Uintptr // the syscall.Errno that Silent has taken from the socket, or 0
}

// NewReader returns a Reader into the room, or nil if the connection does not support it, for
// example with TLS, whose records are read into a buffer of its own.
func NewReader(nc net.Conn, to Room) *Reader {
	raw := socketOf(nc)
	if raw == nil {
		return nil
	}
	r := &Reader{raw: raw, to: to}
	r.read = r.readOnce
	return r
}

// Follow makes r read on after another Reader of the same connection.
func (r *Reader) Follow(before *Reader) { r.lost.Store(before.lost.Load()) }

// Read is like the Read of the connection, but puts the bytes into the room.
func (r *Reader) Read() (n int, err error) {
	if err := r.raw.Read(r.read); err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			op.Op = "read"
		}
		return 0, err
	}
	switch {
	case r.err != nil:
		return 0, os.NewSyscallError("read", r.err)
	case r.n == 0:
		if lost := syscall.Errno(r.lost.Load()); lost != 0 {
			return 0, os.NewSyscallError("read", lost)
		}
		return 0, io.EOF
	}
	return r.n, nil
}

// Silent reports whether a read would wait: nothing is unread, and the peer has not ended the
// connection. It may be called during a Read.
func (r *Reader) Silent() (silent bool) {
	r.raw.Control(func(fd uintptr) { // which does not block: package net has made it so
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		if lost, ok := err.(syscall.Errno); ok && lost != syscall.EAGAIN && lost != syscall.EINTR {
			r.lost.Store(uintptr(lost)) // Linux tells it once: a read finds the end now
		}
		silent = err == syscall.EAGAIN
	})
	return silent
}

func (r *Reader) readOnce(fd uintptr) (done bool) {
	for {
		r.n, r.err = syscall.Read(int(fd), r.to.Free())
		switch r.err {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			r.to.Waits()
			return false
		}
		return true
	}
}
