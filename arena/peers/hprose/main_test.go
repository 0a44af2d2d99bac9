package main

import (
	"testing"

	"github.com/hprose/hprose-golang/v3/io"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

// A message that went through Hprose's encoding has the bytes of the contract as protobuf.
func TestMessageConverts(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) {
		encoded, err := io.Marshal(fromProto(m))
		if err != nil {
			return nil, err
		}
		var decoded *BenchmarkMessage
		if err := io.Unmarshal(encoded, &decoded); err != nil {
			return nil, err
		}
		return toProto(decoded).MarshalVT()
	})
}

func TestCalls(t *testing.T) { peertest.Calls(t, newProgram()) }
