package workload_test

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

// The end of the context closes connections that are still open.
func TestListen(t *testing.T) {
	p := &workload.Program{Serve: func(ctx context.Context, o *workload.ServerOptions) error {
		return workload.Listen(ctx, o.Addr, func(c net.Conn) { io.Copy(c, c) })
	}}
	c, err := net.Dial("tcp", peertest.Serve(t, p, workload.ServerOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	got := make([]byte, 2)
	if _, err := c.Write([]byte("hi")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "hi" {
		t.Errorf("%q, error %v", got, err)
	}
}

func TestListenFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := workload.Listen(t.Context(), l.Addr().String(), nil); err == nil {
		t.Error("listens on an address that is in use")
	}
}
