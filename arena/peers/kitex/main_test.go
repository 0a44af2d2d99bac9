package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/anser-rpc/anser/arena/workload"
)

// What Kitex sends of a message are the bytes of the contract.
func TestMessageHasTheBytesOfTheContract(t *testing.T) {
	for payload, golden := range map[int]string{581: "say581.bin", 64: "say64.bin"} {
		want, err := os.ReadFile("../../workload/testdata/" + golden)
		if err != nil {
			t.Fatal(err)
		}
		message, err := workload.NewMessage(payload)
		if err != nil {
			t.Fatal(err)
		}
		args, decoded := sayMessage{message}, sayMessage{}
		got := make([]byte, args.Size())
		if n := args.FastWrite(got); n != len(got) || !bytes.Equal(got, want) {
			t.Errorf("%s: FastWrite wrote other bytes than those of the contract", golden)
		}
		if err := decoded.Unmarshal(got); err != nil {
			t.Fatal(err)
		}
		if again, err := decoded.Marshal(nil); err != nil || !bytes.Equal(again, want) {
			t.Errorf("%s: decoded and encoded again to other bytes, error %v", golden, err)
		}
	}
}

func TestCalls(t *testing.T) {
	for _, transport := range []string{transportMux, transportPool} {
		t.Run(transport, func(t *testing.T) { calls(t, &peer{transport}) })
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
		if o.Fresh && p.transport == transportMux {
			continue // peer.json says so
		}
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
