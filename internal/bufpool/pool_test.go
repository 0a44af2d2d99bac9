package bufpool_test

import (
	"testing"

	"github.com/anser-rpc/anser/internal/bufpool"
)

func TestSizes(t *testing.T) {
	for _, n := range []int{bufpool.Size, 2 * bufpool.Size, 16 * bufpool.Size, 64 << 20, 128 << 20} {
		b := bufpool.Get(n)
		if len(b) != n || cap(b) != n {
			t.Fatalf("a buffer of %d bytes has the length %d and the capacity %d", n, len(b), cap(b))
		}
		bufpool.Put(b[:n/3])
		if b := bufpool.Get(n); len(b) != n {
			t.Fatalf("a buffer of %d bytes comes back with %d", n, len(b))
		}
	}
}

// Buffers of other sizes are not pooled: Get would return them for the wrong size.
func TestOtherSizes(t *testing.T) {
	for _, n := range []int{0, 1, bufpool.Size - 1, bufpool.Size + 1, 3 * bufpool.Size, 2*bufpool.Size - 1} {
		bufpool.Put(make([]byte, n))
	}
	bufpool.Put(nil)
	for n := bufpool.Size; n <= 8*bufpool.Size; n *= 2 {
		for range 10 {
			if b := bufpool.Get(n); len(b) != n {
				t.Fatalf("a buffer of %d bytes has %d", n, len(b))
			}
		}
	}
}

func TestSmallBuffersDoNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { bufpool.Put(bufpool.Get(bufpool.Size)) }); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}
