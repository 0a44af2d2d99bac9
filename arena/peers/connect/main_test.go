package main

import (
	"testing"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

func TestBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) { return codec{}.Marshal(m) })
}

func TestCalls(t *testing.T) { peertest.Calls(t, newProgram()) }
