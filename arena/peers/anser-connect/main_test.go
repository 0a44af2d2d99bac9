package main

import (
	"bytes"
	"testing"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

func TestBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) {
		var b bytes.Buffer
		err := codec{}.MarshalWrite(t.Context(), &b, m)
		return b.Bytes(), err
	})
}

func TestCalls(t *testing.T) { peertest.Calls(t, newProgram()) }
