package main

import (
	"testing"

	"github.com/anser-rpc/anser/arena/workload/peertest"
)

func TestCalls(t *testing.T) {
	for protocol, factory := range protocols {
		t.Run(protocol, func(t *testing.T) { peertest.Calls(t, newProgram(&peer{factory})) })
	}
}
