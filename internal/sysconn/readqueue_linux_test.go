package sysconn

import (
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestReadQueue(t *testing.T) {
	out, in := connect(t, "tcp", "127.0.0.1:0")
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

// Wait ends with bytes, with the end of the peer, and at the deadline, and takes no byte away.
func TestWaitForUnreadBytes(t *testing.T) {
	for name, end := range map[string]func(out, in net.Conn){
		"bytes":        func(out, _ net.Conn) { out.Write([]byte("x")) },
		"end":          func(out, _ net.Conn) { out.Close() },
		"deadline":     func(_, in net.Conn) { in.SetReadDeadline(time.Unix(1, 0)) },
		"closed":       func(_, in net.Conn) { in.Close() },
		"bytes before": nil,
	} {
		t.Run(name, func(t *testing.T) {
			out, in := connect(t, "tcp", "127.0.0.1:0")
			u, ok := NewReadQueue(in)
			if !ok {
				t.Fatal("a TCP connection cannot be asked")
			}
			if end == nil {
				out.Write([]byte("x"))
				for u.Len() == 0 {
					runtime.Gosched()
				}
				u.Wait()
			} else {
				waited := make(chan struct{})
				go func() {
					defer close(waited)
					u.Wait()
				}()
				end(out, in)
				<-waited
			}
			if want := strings.HasPrefix(name, "bytes"); (u.Len() == 1) != want {
				t.Errorf("%d bytes wait", u.Len())
			}
		})
	}
}
