package anser_test

import (
	"net"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
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

// stacks returns how many bytes the stacks of goroutines have.
func stacks() int64 {
	var m runtime.MemStats
	runtime.GC() // frees those of goroutines that have ended
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse)
}

// A connection on which nothing happens has a small stack and no buffer. The sockets of both ends
// count.
func TestMemoryOfIdleConnections(t *testing.T) {
	const conns = 500
	l := listen(t)
	s := anser.NewServer(silent)
	if err := anser.Handle(s, "Echo.Say", echo); err != nil {
		t.Fatal(err)
	}
	run(t, s, l)
	open := func(n int) {
		for range n {
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { nc.Close() })
			if _, err := wirepeer.New(nc).Handshake(); err != nil {
				t.Fatal(err)
			}
		}
	}
	open(10)
	heapBefore, stacksBefore := heap(), stacks()
	open(conns)
	eventually(t, "the server has all connections", func() bool { return s.Stats().Conns == conns+10 })
	heapEach, stackEach := float64(heap()-heapBefore)/conns, float64(stacks()-stacksBefore)/conns
	t.Logf("%.0f bytes of stack, %.0f of the heap", stackEach, heapEach)
	if stackEach > 3*1024 && !raced {
		t.Errorf("%.0f bytes of stack for each connection", stackEach)
	}
	if heapEach > 4<<10 {
		t.Errorf("%.0f bytes of the heap for each connection", heapEach)
	}
}

// A large frame leaves no large buffer behind on a connection that is then idle.
func TestMemoryAfterALargeFrame(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		const peers, size, reserve = 64, 1 << 20, 32 << 20
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
		// Each end of a connection in memory has a buffer, too, and bufpool may hold its reserve.
		if grown := (heap() - before) / peers; grown > ansertest.DefaultBuffer+256<<10+reserve/peers {
			t.Errorf("%d KiB for each connection", grown>>10)
		}
		runtime.KeepAlive(large)
	})
}
