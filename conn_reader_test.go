package anser_test

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// heap returns how many bytes of the heap are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second one empties the pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A large frame leaves no large buffer behind on a connection that is then idle.
func TestMemoryAfterALargeFrame(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		const peers, size = 8, 1 << 20
		large := append(wire.AppendHeader(nil, wire.Header{Type: wire.FirstSkippable, Length: size}), make([]byte, size)...)
		synctest.Wait()
		before := heap()
		for range peers {
			p := rawClient(t, network, "a:1")
			p.Send(large, wire.AppendMethod(nil, 1, "Echo.Say"), wirepeer.Request(1, 1, nil))
			if f, err := p.Next(); f.Type != wire.TypeReply || err != nil {
				t.Fatal(f.Type, err)
			}
		}
		synctest.Wait() // a reply may be sent before the frame's buffer is released
		// Each end of a connection in memory has a buffer, too.
		if grown := (heap() - before) / peers; grown > ansertest.DefaultBuffer+256<<10 {
			t.Errorf("%d KiB for each connection", grown>>10)
		}
		runtime.KeepAlive(large)
	})
}
