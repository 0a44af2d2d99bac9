package main

import (
	"testing"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
	"github.com/anser-rpc/anser/codec/protobuf"
)

func TestBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) { return protobuf.New().Append(nil, m) })
}

func TestCalls(t *testing.T) { peertest.Calls(t, newProgram()) }
