package main

import (
	"os"
	"testing"

	"google.golang.org/grpc/encoding"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

func TestMain(m *testing.M) {
	setUp()
	os.Exit(m.Run())
}

// vt returns what gRPC encodes with.
func vt(t *testing.T) encoding.Codec {
	t.Helper()
	codec := encoding.GetCodec("proto")
	if codec != (vtproto{}) {
		t.Fatalf("gRPC encodes with %T", codec)
	}
	return codec
}

func TestBytes(t *testing.T) {
	codec := vt(t)
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) { return codec.Marshal(m) })
}

// A message that was decoded has the bytes of the contract again.
func TestDecodedBytes(t *testing.T) {
	codec := vt(t)
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) {
		b, err := codec.Marshal(m)
		if err != nil {
			return nil, err
		}
		var decoded workload.BenchmarkMessage
		if err := codec.Unmarshal(b, &decoded); err != nil {
			return nil, err
		}
		return codec.Marshal(&Reply{&decoded})
	})
}

func TestCalls(t *testing.T) { peertest.Calls(t, newProgram()) }
