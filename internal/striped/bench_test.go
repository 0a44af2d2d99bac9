package striped_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser/internal/striped"
)

// go test ./internal/striped -run - -bench . -cpu 1,2,4,8,16,32
//
// Between two writes of shared numbers a processor does something else, as with calls: without that
// it would keep the cache line for many writes in a row, and a write would seem to cost 3 ns. The
// cost is the difference to "nothing" of the same number of processors, times that number: ns/op is
// the time of all of them together.

// work takes about a third of a microsecond.
func work(x uint64) uint64 {
	for range 300 {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

// sink keeps the compiler from leaving the work out.
var sink atomic.Uint64

func parallel(b *testing.B, newWrite func() func(random uint64)) {
	b.RunParallel(func(pb *testing.PB) {
		write := newWrite()
		x := rand.Uint64()
		for pb.Next() {
			x = work(x)
			write(x >> 32)
		}
		sink.Store(x)
	})
}

// An addition: to nothing; to one word; to a counter, at the place of the goroutine as for a
// server's connections, or at random as for a client's calls; and to a word of each goroutine, as
// no other processor sees it.
func BenchmarkAdd(b *testing.B) {
	b.Run("nothing", func(b *testing.B) {
		parallel(b, func() func(uint64) { return func(uint64) {} })
	})
	b.Run("word", func(b *testing.B) {
		var n atomic.Int64
		parallel(b, func() func(uint64) { return func(uint64) { n.Add(1) } })
	})
	b.Run("counter", func(b *testing.B) {
		var n striped.Counter
		var places atomic.Uint32
		parallel(b, func() func(uint64) {
			place := places.Add(1)
			return func(uint64) { n.Add(place, 1) }
		})
	})
	b.Run("counter/random", func(b *testing.B) {
		var n striped.Counter
		parallel(b, func() func(uint64) { return func(random uint64) { n.Add(uint32(random), 1) } })
	})
	b.Run("own", func(b *testing.B) {
		parallel(b, func() func(uint64) {
			n := new(struct {
				_ [128]byte
				n atomic.Int64
				_ [128]byte
			})
			return func(uint64) { n.n.Add(1) }
		})
	})
}

// A place that is taken and given back: of one word; of a Limit by goroutines with parts of their
// own; and by goroutines with the same part.
func BenchmarkTake(b *testing.B) {
	const places = 10_000
	b.Run("word", func(b *testing.B) {
		var n atomic.Int64
		parallel(b, func() func(uint64) {
			return func(uint64) {
				if n.Add(1) <= places {
					n.Add(-1)
				}
			}
		})
	})
	for name, same := range map[string]uint32{"limit": 1, "limit/same": 0} {
		b.Run(name, func(b *testing.B) {
			l := newLimit(places, striped.Stripes())
			var parts atomic.Uint32
			parallel(b, func() func(uint64) {
				part := parts.Add(same)
				return func(uint64) {
					if l.Take(part) {
						l.Give(part)
					}
				}
			})
		})
	}
}

// A mutex that is locked for a few instructions, twice as for a call on a worker.
func BenchmarkLock(b *testing.B) {
	var mu sync.Mutex
	n := 0
	parallel(b, func() func(uint64) {
		return func(uint64) {
			for range 2 {
				mu.Lock()
				n++
				mu.Unlock()
			}
		}
	})
}
