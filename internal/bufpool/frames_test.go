package bufpool_test

import (
	"runtime"
	"testing"

	"github.com/anser-rpc/anser/internal/bufpool"
)

// A buffer of a frame is at least as long as the frame and at most an eighth longer, and comes back
// with its own length only.
func TestFrames(t *testing.T) {
	least := bufpool.FrameSize(1)
	for n := 1; n < 300<<20; n += n/19 + 1 {
		for _, n := range []int{n, bufpool.FrameSize(n), bufpool.FrameSize(n) + 1} {
			size := bufpool.FrameSize(n)
			if size < n || n > least && size-n > n/8 {
				t.Fatalf("a buffer of %d bytes for a frame of %d", size, n)
			}
			if bufpool.FrameSize(size) != size {
				t.Fatalf("a buffer of %d bytes for a frame of %d", bufpool.FrameSize(size), size)
			}
			if n > 4<<20 {
				continue
			}
			b := bufpool.GetFrame(n)
			if len(b) != size || cap(b) != size {
				t.Fatalf("a buffer for %d bytes has the length %d and the capacity %d, want %d", n, len(b), cap(b), size)
			}
			bufpool.PutFrame(b[:n])
		}
	}
}

// Buffers of other sizes are not kept: GetFrame would return them for the wrong size.
func TestOtherFrames(t *testing.T) {
	for n := range 1 << 10 {
		bufpool.PutFrame(make([]byte, n*100))
	}
	bufpool.PutFrame(nil)
	for n := 1; n < 1<<20; n += 997 {
		if b := bufpool.GetFrame(n); len(b) != bufpool.FrameSize(n) || cap(b) != len(b) {
			t.Fatalf("a buffer for %d bytes has %d", n, len(b))
		}
	}
}

// Free buffers that are used again and again survive garbage collections, unlike those of a
// sync.Pool.
func TestFramesSurviveCollections(t *testing.T) {
	const size = 256 << 10
	same := 0
	for range 20 {
		b := bufpool.GetFrame(size)
		first := &b[0]
		bufpool.PutFrame(b)
		runtime.GC()
		runtime.GC()
		runtime.GC()
		b = bufpool.GetFrame(size)
		if &b[0] == first {
			same++
		}
		bufpool.PutFrame(b)
	}
	if same == 0 {
		t.Error("no buffer survived")
	}
}
