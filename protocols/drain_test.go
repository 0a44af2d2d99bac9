package protocols_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// A drain does not close an idle connection of HTTP/1.1 while a request may be on its way: the
// client learns of the drain from an answer.
func TestDrainLetsRequestsArrive(t *testing.T) {
	s, address := serve(t)
	anser.Handle(s, "Arith.One", func(context.Context, *args) (*reply, error) { return &reply{1}, nil })
	used, unused := idleConn(t, address), idleConn(t, address)
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(t.Context()) }()
	used.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := used.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("an idle connection was closed at once: %v", err)
	}
	used.SetReadDeadline(time.Time{})
	for ends := false; !ends; {
		ends = ask(t, used)
	}
	for _, nc := range []net.Conn{used, unused} {
		if b, err := io.ReadAll(nc); err != nil || len(b) > 0 {
			t.Errorf("%q, %v", b, err)
		}
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// A request on a connection that the server has accepted just before a drain is refused with an
// answer: without one its client could not know that it did not run.
func TestDrainAnswersNewConnections(t *testing.T) {
	s, address := serve(t)
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	io.WriteString(nc, "PO")
	anser.Handle(s, "Arith.One", func(context.Context, *args) (*reply, error) { return &reply{1}, nil })
	if ask(t, idleConn(t, address)) { // which was accepted later
		t.Fatal("it drains already")
	}
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(t.Context()) }()
	for {
		more, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		more.Close()
	}
	io.WriteString(nc, "ST /Arith.One HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 503 || resp.Header.Get("Anser-Outcome") != "refused" || !resp.Close {
		t.Errorf("%d %q, %v", resp.StatusCode, b, err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// idleConn returns a connection on which one request was answered.
func idleConn(t *testing.T, address string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if ask(t, nc) {
		t.Fatal("the connection ends after one request")
	}
	return nc
}

// ask sends a request, and returns whether the answer is the last one of the connection.
func ask(t *testing.T, nc net.Conn) (last bool) {
	t.Helper()
	const request = "POST /Arith.One HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	if _, err := io.WriteString(nc, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || string(b) != `{"C":1}` {
		t.Fatalf("%d %q, %v", resp.StatusCode, b, err)
	}
	return resp.Close
}
