package main

import (
	"testing"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

func TestBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) {
		b, err := codec{}.Marshal(m)
		defer b.Free()
		return b.Materialize(), err
	})
}

func TestCalls(t *testing.T) { peertest.Calls(t, newProgram(false)) }

func TestCallsOut(t *testing.T) { peertest.Calls(t, newProgram(true)) }
