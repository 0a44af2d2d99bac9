package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/arena/workload"
)

// Dubbo-go encodes with the protobuf library: what it makes of a message are the bytes of the contract.
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
		got, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes than those of the contract, error %v", golden, err)
		}
		var decoded workload.BenchmarkMessage
		if err := proto.Unmarshal(want, &decoded); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(&decoded, message) {
			t.Errorf("%s: decoded to another message", golden)
		}
	}
}

func TestCalls(t *testing.T) {
	addr := start(t)
	for _, o := range []workload.ClientOptions{
		{Workload: "say", Conns: 1, Payload: 581},
		{Workload: "say", Payload: 1 << 20},
		{Workload: "add", Conns: 1, Payload: 64},
		{Workload: "add", Payload: 64},
	} {
		o.Addrs, o.Callers, o.Window = []string{addr}, 2, 1
		caller, closing, err := open(t.Context(), &o)
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
func start(t *testing.T) string {
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
	go func() { served <- serve(ctx, &workload.ServerOptions{Addr: addr}) }()
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
