package striped_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/striped"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// processors sets GOMAXPROCS until the test ends.
func processors(t testing.TB, n int) {
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func TestStripes(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 32: 32, 33: 64, 100: 64} {
		processors(t, n)
		if got := striped.Stripes(); got != want {
			t.Errorf("%d parts for %d processors, want %d", got, n, want)
		}
	}
}

// The sum is exact while the counter gets its stripes, and with them.
func TestCounter(t *testing.T) {
	for _, n := range []int{1, 4} {
		processors(t, n)
		var c striped.Counter
		var done atomic.Int64
		var wg sync.WaitGroup
		for i := range uint32(4) {
			wg.Go(func() {
				for range 200_000 {
					c.Add(i, 1)
					done.Add(1)
				}
			})
		}
		for last := int64(0); last < 4*200_000; {
			least := done.Load()
			now := c.Load()
			if now < last || now < least {
				t.Fatalf("%d after %d, and %d additions have ended", now, last, least)
			}
			last = now
			runtime.Gosched()
		}
		wg.Wait()
		c.Add(1, -5)
		if got := c.Load(); got != 4*200_000-5 {
			t.Errorf("%d on %d processors, want %d", got, n, 4*200_000-5)
		}
	}
}

// Thousands of counters are hardly used, and must stay small.
func TestCounterIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(striped.Counter{}); n > 32 {
		t.Errorf("%d bytes, want at most 32", n)
	}
	processors(t, 4)
	var c striped.Counter
	allocated := testing.AllocsPerRun(100, func() {
		for range 1000 {
			c.Add(0, 1)
		}
	})
	if allocated != 0 || c.Load() != 101*1000 {
		t.Errorf("%v allocations for %d additions of one goroutine", allocated, c.Load())
	}
}
