package protocols

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/anser-rpc/anser"
)

// drained is a connection that drains while the answer of the first request is written.
type drained struct {
	net.Conn
	drain func()
}

func (c *drained) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if c.drain != nil {
		c.drain()
		c.drain = nil
	}
	return n, err
}

// A connection whose answer did not say that it is the last one takes another request.
func TestDrainBehindAnAnswer(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	d := &drained{Conn: far}
	l := newOneConn(anser.Incoming{Conn: d})
	d.drain = l.conn.drain
	server := &http.Server{
		Handler:   l.conn.handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "done") })),
		ConnState: func(_ net.Conn, state http.ConnState) { l.conn.changed(state) },
	}
	over := make(chan error, 1)
	go func() { over <- server.Serve(l) }()
	r := bufio.NewReader(near)
	for i, last := range []bool{false, true} {
		if _, err := io.WriteString(near, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "done" || resp.Close != last {
			t.Errorf("answer %d: %q, %v, the last one: %v, want %v", i, b, err, resp.Close, last)
		}
	}
	if b, err := io.ReadAll(r); err != nil || len(b) > 0 {
		t.Errorf("%q, %v behind the last answer", b, err)
	}
	if err := <-over; err != io.EOF {
		t.Error(err)
	}
}
