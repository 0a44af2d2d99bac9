package sysconn

import (
	"io"
	"net"
	"syscall"
	"testing"
)

// The last bytes arrive, and then the end; a connection that is no socket of TCP takes none.
func TestWriteLast(t *testing.T) {
	out, in := connect(t, "tcp", "127.0.0.1:0")
	if !WriteLast(out, []byte("bye")) {
		t.Error("nothing was written")
	}
	out.Close()
	if all, err := io.ReadAll(in); string(all) != "bye" || err != nil {
		t.Errorf("%q, %v", all, err)
	}
	if WriteLast(out, []byte("more")) {
		t.Error("a closed connection has taken bytes")
	}
	pipe, _ := net.Pipe()
	if WriteLast(pipe, []byte("bye")) {
		t.Error("a pipe has taken bytes")
	}
}

// A connection with unread input is reset when it is closed. So its last bytes must be written
// before, by themselves.
func TestWriteLastWithUnreadInput(t *testing.T) {
	out, in := connect(t, "tcp", "127.0.0.1:0")
	if _, err := in.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	raw, err := out.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Read(func(fd uintptr) bool { // waits until the input is there
		var b [1]byte
		n, _, _ := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return n > 0
	})
	if WriteLast(out, []byte("bye")) {
		t.Error("it was left to a reset to carry the last bytes")
	}
}
