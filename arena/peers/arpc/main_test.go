package main

import (
	"testing"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

func TestBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) { return codec{}.Marshal(m) })
}

// The race detector finds arpc's own races here: Stop and Shutdown set a flag that its loops read.

func TestDefaults(t *testing.T) { peertest.Calls(t, newProgram(new(settings))) }

func TestInline(t *testing.T) {
	peertest.Calls(t, newProgram(&settings{inline: true, buffers: true}))
}

func TestNoDelay(t *testing.T) {
	peertest.Calls(t, newProgram(&settings{inline: true, buffers: true, noDelay: true}))
}
