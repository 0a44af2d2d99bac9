package badinput_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"
)

// usage is the process's use of resources.
type usage struct {
	heap       int64
	fds        int
	goroutines int // not counting tests, and the idle workers of servers, which are kept for a while
}

// measure collects garbage first: pools release their contents in two steps.
func measure() usage {
	for range 3 {
		runtime.GC()
	}
	return holds()
}

// holds is measure without the garbage collections.
func holds() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{heap: int64(m.HeapAlloc)}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil { // Linux
		u.fds = len(list)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		idle := bytes.Contains(stack, []byte("anser.(*workers).work(")) && !bytes.Contains(stack, []byte("anser.(*serverConn).runJob("))
		if !idle && !bytes.Contains(stack, []byte("testing.tRunner(")) {
			u.goroutines++
		}
	}
	return u
}

// compare returns an error unless the process soon uses no more than before.
func (u usage) compare() error {
	var now usage
	back := soon(func() bool {
		runtime.GC() // one is usually enough, and all others follow soon
		now = holds()
		return now.fds <= u.fds && now.goroutines <= u.goroutines && now.heap-u.heap <= heapGrowth
	})
	if back {
		return nil
	}
	return fmt.Errorf("%d KiB of heap, %d file descriptors and %d goroutines are left, before %d KiB, %d and %d",
		now.heap>>10, now.fds, now.goroutines, u.heap>>10, u.fds, u.goroutines)
}

// leaves checks that f leaves nothing behind.
func leaves(t *testing.T, f func()) {
	t.Helper()
	before := measure()
	f()
	if err := before.compare(); err != nil {
		t.Error(err)
	}
}
