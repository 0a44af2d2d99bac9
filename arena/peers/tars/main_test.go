package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/TarsCloud/TarsGo/tars/protocol/codec"

	"github.com/anser-rpc/anser/arena/peers/tars/benchmark"
	"github.com/anser-rpc/anser/arena/workload"
)

// A message that went through Tars's encoding has the bytes of the contract as protobuf.
func TestMessageConvertsToTheBytesOfTheContract(t *testing.T) {
	for payload, golden := range map[int]string{581: "say581.bin", 64: "say64.bin"} {
		want, err := os.ReadFile("../../workload/testdata/" + golden)
		if err != nil {
			t.Fatal(err)
		}
		message, err := workload.NewMessage(payload)
		if err != nil {
			t.Fatal(err)
		}
		decoded, n := recode(t, fromProto(message))
		got, err := toProto(decoded).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: other fields than those of the contract", golden)
		}
		t.Logf("%s is %d bytes", golden, n)
	}
}

func TestTheListIsSent(t *testing.T) {
	decoded, _ := recode(t, fromProto(&workload.BenchmarkMessage{Field5: []uint64{1, 1 << 40}}))
	if got := toProto(decoded).Field5; len(got) != 2 || got[0] != 1 || got[1] != 1<<40 {
		t.Errorf("the list is %v after a round trip", got)
	}
}

// recode encodes and decodes a message, and returns the size of its encoding too.
func recode(t *testing.T, m *benchmark.Message) (*benchmark.Message, int) {
	t.Helper()
	b := codec.NewBuffer()
	if err := m.WriteBlock(b, 1); err != nil {
		t.Fatal(err)
	}
	decoded := new(benchmark.Message)
	if err := decoded.ReadBlock(codec.NewReader(b.ToBytes()), 1); err != nil {
		t.Fatal(err)
	}
	return decoded, b.Len()
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
