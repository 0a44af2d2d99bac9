package main

import (
	"testing"

	"github.com/TarsCloud/TarsGo/tars/protocol/codec"

	"github.com/anser-rpc/anser/arena/peers/tars/benchmark"
	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

// A message that went through Tars's encoding has the bytes of the contract as protobuf.
func TestMessageConverts(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) {
		decoded, err := recode(fromProto(m))
		if err != nil {
			return nil, err
		}
		return toProto(decoded).MarshalVT()
	})
}

func TestTheListIsSent(t *testing.T) {
	decoded, err := recode(fromProto(&workload.BenchmarkMessage{Field5: []uint64{1, 1 << 40}}))
	if err != nil {
		t.Fatal(err)
	}
	if got := toProto(decoded).Field5; len(got) != 2 || got[0] != 1 || got[1] != 1<<40 {
		t.Errorf("the list is %v after a round trip", got)
	}
}

// recode encodes and decodes a message.
func recode(m *benchmark.Message) (*benchmark.Message, error) {
	b := codec.NewBuffer()
	if err := m.WriteBlock(b, 1); err != nil {
		return nil, err
	}
	decoded := new(benchmark.Message)
	return decoded, decoded.ReadBlock(codec.NewReader(b.ToBytes()), 1)
}

// TarsGo has one server in a process.
func TestCalls(t *testing.T) {
	p := newProgram()
	peertest.CallsTo(t, p, []string{peertest.Serve(t, p, workload.ServerOptions{})}, "fresh")
}
