package main

import (
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
	"github.com/anser-rpc/anser/codec/protobuf"
)

func TestBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) { return protobuf.New().Append(nil, m) })
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) {
		own, err := ownClient{request: new(atomic.Pointer[request])}.own(m)
		if err != nil {
			return nil, err
		}
		return protobuf.New().Append(nil, own)
	})
}

func TestCalls(t *testing.T) { peertest.Calls(t, newProgram(false)) }

func TestCallsOfVtproto(t *testing.T) { peertest.Calls(t, newProgram(true)) }
