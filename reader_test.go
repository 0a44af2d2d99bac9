package anser_test

import (
	"runtime"
	"testing"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// heap returns how many bytes are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools let go at the second one
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A large frame leaves no large buffer behind on a connection that is then idle.
func TestMemoryAfterALargeFrame(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
	const peers = 8
	large := append(wire.AppendHeader(nil, wire.Header{Type: wire.FirstSkippable, Length: 4 << 20}), make([]byte, 4<<20)...)
	before := heap()
	for range peers {
		p := rawClient(t, network, "a:1")
		p.Send(large, wire.AppendMethod(nil, 1, "Echo.Say"), wirepeer.Request(1, 1, nil))
		if f, err := p.Next(); f.Type != wire.TypeReply || err != nil {
			t.Fatal(f.Type, err)
		}
	}
	if grown := heap() - before; grown > peers<<20 {
		t.Errorf("%d KiB for each connection", grown/peers>>10)
	}
	runtime.KeepAlive(large)
}
