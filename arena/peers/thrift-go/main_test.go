package main

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/anser-rpc/anser/arena/workload"
)

func TestCalls(t *testing.T) {
	for protocol, factory := range protocols {
		t.Run(protocol, func(t *testing.T) { calls(t, &peer{factory}) })
	}
}

// calls makes a few calls of each kind.
func calls(t *testing.T, p *peer) {
	addr := start(t, p)
	for _, o := range []workload.ClientOptions{
		{Workload: "say", Conns: 1, Payload: 581},
		{Workload: "say", Payload: 1 << 20},
		{Workload: "say", Fresh: true, Payload: 64},
		{Workload: "add", Conns: 1, Payload: 64},
		{Workload: "add", Payload: 64},
		{Workload: "add", Fresh: true, Payload: 64},
	} {
		o.Addrs, o.Callers, o.Window = []string{addr}, 2, 1
		caller, closing, err := p.open(t.Context(), &o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			if err := caller(i % 2)(t.Context()); err != nil {
				t.Errorf("%+v: %v", o, err)
			}
		}
		closing()
	}
}

// start serves until the test ends, and returns the address.
func start(t *testing.T, p *peer) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- p.serve(ctx, &workload.ServerOptions{Addr: addr}) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close() // it was only to see whether it is accepted
			return addr
		}
	}
	t.Fatalf("nothing listens on %s", addr)
	return ""
}
