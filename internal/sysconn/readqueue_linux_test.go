package sysconn

import (
	"net"
	"testing"
	"time"
)

func TestReadQueue(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	u, ok := NewReadQueue(in)
	if !ok {
		t.Fatal("a TCP connection cannot be asked")
	}
	if n := u.Len(); n != 0 {
		t.Errorf("%d bytes wait in a new connection", n)
	}
	if _, err := out.Write(make([]byte, 12_345)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); u.Len() != 12_345; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes wait after a minute, want 12345", u.Len())
		}
	}
	pipe, _ := net.Pipe()
	if _, ok := NewReadQueue(pipe); ok {
		t.Error("a pipe can be asked")
	}
}
