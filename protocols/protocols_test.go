package protocols_test

import (
	"context"
	"io"
	"log/slog"
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
