package main

import (
	"testing"

	"github.com/anser-rpc/anser/arena/workload"
	"github.com/anser-rpc/anser/arena/workload/peertest"
)

func TestBytes(t *testing.T) { peertest.Bytes(t, fastWrite) }

// fastWrite is how Kitex encodes a message.
func fastWrite(m *workload.BenchmarkMessage) ([]byte, error) {
	args := sayMessage{m}
	b := make([]byte, args.Size())
	return b[:args.FastWrite(b)], nil
}

// A message that was decoded has the bytes of the contract again.
func TestDecodedBytes(t *testing.T) {
	peertest.Bytes(t, func(m *workload.BenchmarkMessage) ([]byte, error) {
		b, err := fastWrite(m)
		if err != nil {
			return nil, err
		}
		var decoded sayMessage
		if err := decoded.Unmarshal(b); err != nil {
			return nil, err
		}
		return decoded.Marshal(nil)
	})
}

func TestMux(t *testing.T) { peertest.Calls(t, newProgram(&peer{transport: transportMux}), "fresh") }

func TestPool(t *testing.T) { peertest.Calls(t, newProgram(&peer{transport: transportPool})) }
