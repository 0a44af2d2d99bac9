package sysconn

import (
	"io"
	"net"
	"testing"
)

// The last bytes arrive, and then the end; a connection that is no socket of TCP takes none.
func TestWriteLast(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
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
