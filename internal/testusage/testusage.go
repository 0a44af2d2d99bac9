// Package testusage measures what tests of bad input leave behind in their process.
package testusage

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// HeapGrowth is the number of bytes by which the heap may have grown.
const HeapGrowth = 8 << 20

// Resources are back soon, within 5 s: this is the number of checks, with a pause before each. If
// the machine does not run the test, it gets more time.
const (
	pause = 10 * time.Millisecond
	looks = int(5 * time.Second / pause)
)

// Soon reports whether ok returns true soon.
func Soon(ok func() bool) bool {
	for range looks {
		if ok() {
			return true
		}
		time.Sleep(pause)
	}
	return ok()
}

// Usage is the process's use of resources.
type Usage struct {
	Heap       int64
	FDs        int
	Goroutines int // not counting tests, and the idle workers of servers, which are kept for a while
}

// Measure collects garbage first: pools release their contents in two steps.
func Measure() Usage {
	for range 3 {
		runtime.GC()
	}
	return Now()
}

// Now is Measure without the garbage collections.
func Now() Usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := Usage{Heap: int64(m.HeapAlloc)}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil { // Linux
		u.FDs = len(list)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		idle := bytes.Contains(stack, []byte("internal/workers.(*pool[...]).work(")) && !bytes.Contains(stack, []byte("anser.(*job).execute("))
		if !idle && !bytes.Contains(stack, []byte("testing.tRunner(")) {
			u.Goroutines++
		}
	}
	return u
}

// Compare returns an error unless the process soon uses no more than before.
func (u Usage) Compare() error {
	var now Usage
	back := Soon(func() bool {
		runtime.GC() // one is usually enough, and all others follow soon
		now = Now()
		return now.FDs <= u.FDs && now.Goroutines <= u.Goroutines && now.Heap-u.Heap <= HeapGrowth
	})
	if back {
		return nil
	}
	return fmt.Errorf("%d KiB of heap, %d file descriptors and %d goroutines are left, before %d KiB, %d and %d",
		now.Heap>>10, now.FDs, now.Goroutines, u.Heap>>10, u.FDs, u.Goroutines)
}

// Leaves checks that f leaves nothing behind.
func Leaves(t *testing.T, f func()) {
	t.Helper()
	before := Measure()
	f()
	if err := before.Compare(); err != nil {
		t.Error(err)
	}
}
