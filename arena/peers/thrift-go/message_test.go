package main

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/anser-rpc/anser/arena/peers/thrift-go/benchmark"
	"github.com/anser-rpc/anser/arena/workload"
)

// A message that went through Thrift's encoding has the bytes of the contract as protobuf.
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
		for protocol, factory := range protocols {
			decoded := benchmark.NewBenchmarkMessage()
			n := recode(t, factory, fromProto(message), decoded)
			got, err := toProto(decoded).MarshalVT()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s, %s: other fields than those of the contract", golden, protocol)
			}
			t.Logf("%s is %d bytes in the %s protocol", golden, n, protocol)
		}
	}
}

// recode writes and reads a message, and returns the size of its encoding.
func recode(t *testing.T, factory thrift.TProtocolFactory, from, to *benchmark.BenchmarkMessage) int {
	t.Helper()
	buffer := thrift.NewTMemoryBuffer()
	protocol := factory.GetProtocol(buffer)
	if err := from.Write(context.Background(), protocol); err != nil {
		t.Fatal(err)
	}
	if err := protocol.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	n := buffer.Len()
	if err := to.Read(context.Background(), protocol); err != nil {
		t.Fatal(err)
	}
	return n
}
