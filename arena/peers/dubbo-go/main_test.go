package main

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

// Dubbo-go encodes with the protobuf library.
var deterministic = proto.MarshalOptions{Deterministic: true}

func TestBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) { return deterministic.Marshal(m) })
}

// A message that was decoded has the bytes of the contract again.
func TestDecodedBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) {
		b, err := deterministic.Marshal(m)
		if err != nil {
			return nil, err
		}
		var decoded workload.BenchmarkMessage
		if err := proto.Unmarshal(b, &decoded); err != nil {
			return nil, err
		}
		return deterministic.Marshal(&decoded)
	})
}

// Dubbo-go has one server of a service in a process.
func TestCalls(t *testing.T) {
	p := newProgram()
	peertest.CallsTo(t, p, []string{peertest.Serve(t, p, workload.ServerOptions{})}, "fresh")
}
