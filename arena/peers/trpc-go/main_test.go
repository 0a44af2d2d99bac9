package main

import (
	"os"
	"testing"

	"trpc.group/trpc-go/trpc-go/codec"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

func TestMain(m *testing.M) {
	setUp()
	os.Exit(m.Run())
}

func encode(m *workload.BenchmarkMessage) ([]byte, error) {
	return codec.Marshal(codec.SerializationTypePB, m)
}

func TestBytes(t *testing.T) { peertest.Bytes(t, encode) }

// A message that was decoded has the bytes of the contract again.
func TestDecodedBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) {
		b, err := encode(m)
		if err != nil {
			return nil, err
		}
		var decoded workload.BenchmarkMessage
		if err := codec.Unmarshal(codec.SerializationTypePB, b, &decoded); err != nil {
			return nil, err
		}
		return decoded.MarshalVT()
	})
}

func TestCalls(t *testing.T) { peertest.Calls(t, newProgram()) }
