package protocols_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/rpc"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

type (
	args  struct{ A, B int }
	reply struct{ C int }
)

// serve starts a server with all protocols, and returns its address.
func serve(t *testing.T, opts ...anser.ServerOption) (*anser.Server, string) {
	t.Helper()
	return serveWith(t, append(opts, protocols.All())...)
}

func serveWith(t *testing.T, opts ...anser.ServerOption) (*anser.Server, string) {
	t.Helper()
	s := anser.NewServer(append(opts, anser.NoSignals(), anser.Logger(slog.New(slog.DiscardHandler)))...)
	anser.Handle(s, "Arith.Mul", func(_ context.Context, in *args) (*reply, error) { return &reply{in.A * in.B}, nil })
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		s.Serve(l)
		close(done)
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return s, l.Addr().String()
}

func TestAnserAndNetRPC(t *testing.T) {
	_, addr := serve(t)
	c, err := anser.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out, err := anser.Call[reply](t.Context(), c, "Arith.Mul", &args{7, 8})
	if err != nil || out.C != 56 {
		t.Fatalf("%v, %v", out, err)
	}
	old, err := rpc.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	var r reply
	if err := old.Call("Arith.Mul", &args{7, 8}, &r); err != nil || r.C != 56 {
		t.Fatalf("%v, %v", r, err)
	}
	resp, err := http.Post("http://"+addr+"/nothing", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 404 {
		t.Fatalf("%d %s", resp.StatusCode, b)
	}
}

// A net/rpc client that begins with CONNECT calls the port too, also if CONNECT arrives in
// parts.
func TestDialHTTP(t *testing.T) {
	_, addr := serve(t)
	c, err := rpc.DialHTTP("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var r reply
	if err := c.Call("Arith.Mul", &args{7, 8}, &r); err != nil || r.C != 56 {
		t.Fatalf("%v, %v", r, err)
	}
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, b := range []byte("CONNECT /_goRPC_ HTTP/1.0\n\n") {
		if _, err := nc.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	answer := make([]byte, len("HTTP/1.0 200 Connected to Go RPC\n\n"))
	if _, err := io.ReadFull(nc, answer); err != nil || string(answer) != "HTTP/1.0 200 Connected to Go RPC\n\n" {
		t.Fatalf("%q, %v", answer, err)
	}
	old := rpc.NewClient(nc)
	defer old.Close()
	if err := old.Call("Arith.Mul", &args{3, 5}, &r); err != nil || r.C != 15 {
		t.Fatalf("%v, %v", r, err)
	}
}
