package handshakes_test

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/handshakes"
	"github.com/anser-rpc/anser/internal/sysconn"
)

// A connection whose bytes wait in the socket does not keep the server waiting.
func TestUnreadBytesKeepThePlace(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client.Write([]byte("hello"))
	queue, ok := sysconn.NewReadQueue(server)
	if !ok {
		t.Fatal("the bytes in the socket are not known")
	}
	for queue.Len() == 0 {
		runtime.Gosched()
	}
	count := 0
	places := handshakes.New(handshakes.Config{Places: 1, Timeout: time.Hour, Evicted: func() { count++ }})
	p := places.Enter(server, never)
	defer p.Leave()
	began := time.Now()
	if places.Enter(conn(t), func() bool { return time.Since(began) > 300*time.Millisecond }) != nil || count != 0 {
		t.Error("the connection lost its place although its bytes were there")
	}
	server.Read(make([]byte, 5))
	next := places.Enter(conn(t), never)
	defer next.Leave()
	if count != 1 || p.Heard() {
		t.Error("the connection keeps its place although the server waits for it")
	}
}
