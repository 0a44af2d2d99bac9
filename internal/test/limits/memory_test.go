package limits_test

import (
	"runtime"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

// A frame that declares the maximum number of bytes, but contains ten of them, costs no more than
// one that declares ten.
func TestDeclaredLengthsCostNothing(t *testing.T) {
	const conns = 50
	g := newTarget(t, row{})
	settings := wire.DefaultSettings()
	block := wire.AppendMetadata(nil, []wire.Pair{{Key: "k"}})
	copy(block[len(block)-4:], []byte{0xFF, 0xFF, 0, 0}) // of the value
	for name, frame := range map[string][]byte{
		"a frame":     append(wire.AppendHeader(nil, wire.Header{Length: uint32(settings.MaxFrame), Type: wire.TypeRequest, ID: 1}), zeros(10)...),
		"a skippable": append(wire.AppendHeader(nil, wire.Header{Length: uint32(settings.MaxFrame), Type: wire.FirstSkippable}), zeros(10)...),
	} {
		before := heap()
		for range conns {
			p := g.peer(t)
			p.Send(wire.AppendPing(nil, wire.TypePing, 1), frame) // in one segment
			if _, err := p.NextOf(wire.TypePong); err != nil {
				t.Fatal(err)
			}
		}
		each := (heap() - before) / conns
		t.Logf("%s costs %d bytes on both sides together", name, each)
		if each >= 128<<10 {
			t.Errorf("%s costs %d bytes, want less than 128 KiB", name, each)
		}
	}
	// A length inside the frame is checked without allocating memory: the data is missing.
	before := heap()
	for range conns {
		err := answer(t, g.peer(t), wire.AppendRequest(nil, 1, 0, &wire.Request{Method: echo, Codec: 1, Priority: 2, Metadata: block}))
		if c, ok := err.(*closed); !ok || c.reason != wire.BadMetadata {
			t.Fatal(err)
		}
	}
	if each := (heap() - before) / conns; each >= 128<<10 {
		t.Errorf("metadata that is not there costs %d bytes, want less than 128 KiB", each)
	}
}

func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
