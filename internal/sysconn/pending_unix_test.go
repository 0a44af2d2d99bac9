//go:build unix

package sysconn

import (
	"io"
	"net"
	"testing"
)

func TestPending(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const n = 3
	for range n {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		io.WriteString(nc, "x")
	}
	conns := Pending(l)
	if len(conns) != n || len(Pending(l)) != 0 || Pending(nil) != nil {
		t.Fatalf("%d connections, want %d once", len(conns), n)
	}
	for _, nc := range conns {
		if b, err := io.ReadAll(io.LimitReader(nc, 1)); err != nil || string(b) != "x" || nc.RemoteAddr() == nil {
			t.Errorf("%q, %v", b, err)
		}
		nc.Close()
	}
}
