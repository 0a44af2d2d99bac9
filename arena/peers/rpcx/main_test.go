package main

import (
	"testing"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

func TestBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) { return codec{}.Encode(m) })
}

func TestServices(t *testing.T) { peertest.Calls(t, newProgram(false)) }

func TestHandlers(t *testing.T) { peertest.Calls(t, newProgram(true)) }

// Every field of the request is in the reply.
func TestCopyMessage(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) {
		out := new(workload.BenchmarkMessage)
		copyMessage(out, m)
		return codec{}.Encode(out)
	})
}
