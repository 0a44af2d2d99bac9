package codectest

import (
	"testing"

	"github.com/anser-rpc/anser/codec"
)

// Bench measures c on v in two sub-benchmarks: appending to a buffer with enough capacity, and
// decoding into a new value.
func Bench[T any](b *testing.B, c codec.Codec, v *T) {
	data, err := c.Append(nil, v)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("append", func(b *testing.B) {
		buf := make([]byte, 0, 2*len(data)+1024)
		b.ReportAllocs()
		b.ReportMetric(float64(len(data)), "bytes")
		for b.Loop() {
			if _, err := c.Append(buf, v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := c.Unmarshal(data, new(T)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Ceiling fails if c allocates more often than allowed: when it appends v to a buffer with enough
// capacity, and when it decodes into a new value, which is itself an allocation.
func Ceiling[T any](t *testing.T, c codec.Codec, v *T, onAppend, onUnmarshal float64) {
	t.Helper()
	data, err := c.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 2*len(data)+1024)
	if n := allocs(func() { _, err = c.Append(buf, v) }); n > onAppend || err != nil {
		t.Errorf("Append(%T): %v allocations, the ceiling is %v; error %v", v, n, onAppend, err)
	}
	if n := allocs(func() { err = c.Unmarshal(data, new(T)) }); n > onUnmarshal || err != nil {
		t.Errorf("Unmarshal(%T): %v allocations, the ceiling is %v; error %v", v, n, onUnmarshal, err)
	}
}

// allocs returns the minimum number of allocations of f: under the race detector a sync.Pool drops
// items at random.
func allocs(f func()) float64 {
	least := testing.AllocsPerRun(1, f)
	for range 30 {
		least = min(least, testing.AllocsPerRun(1, f))
	}
	return least
}
