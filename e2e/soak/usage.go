package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"
)

// held is what the process holds at a moment.
type held struct {
	goroutines int
	fds        int   // open descriptors; 0 if the system does not report them
	heap       int64 // bytes that are in use after a garbage collection
	rss        int64 // bytes in RAM; 0 if the system does not report them
}

// measure collects the garbage and looks. What pools hold survives one collection.
func measure() (held, error) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h := held{goroutines: runtime.NumGoroutine(), heap: int64(m.HeapAlloc)}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return h, err
	}
	h.fds = max(0, len(entries)-1) // one is that of the folder
	data, err := os.ReadFile("/proc/self/statm")
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, err
	}
	var size, resident int64
	if _, err := fmt.Fscan(bytes.NewReader(data), &size, &resident); err != nil {
		return h, fmt.Errorf("/proc/self/statm: %w", err)
	}
	h.rss = resident * int64(os.Getpagesize())
	return h, nil
}

// warm makes the runtime create its per-process resources: the network poller has descriptors of
// its own.
func warm() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return l.Close()
}

// slack is by how many goroutines and descriptors the end may differ from the start.
const slack = 2

// settle waits until the process holds no more than at the start, for a minute at most: what is
// closed may still be on its way out.
func settle(start held) (held, error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		now, err := measure()
		if err != nil || now.goroutines <= start.goroutines+slack && now.fds <= start.fds+slack || time.Now().After(end) {
			return now, err
		}
	}
}

// leaks returns what is left at the end, compared with the start.
func leaks(start, end held) []string {
	var what []string
	if d := end.goroutines - start.goroutines; d < -slack || d > slack {
		what = append(what, fmt.Sprintf("%d goroutines are left: there were %d at the start", end.goroutines, start.goroutines))
	}
	if d := end.fds - start.fds; d < -slack || d > slack {
		what = append(what, fmt.Sprintf("%d descriptors are open: there were %d at the start", end.fds, start.fds))
	}
	return what
}

// stacks returns the stacks of all goroutines.
func stacks() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}

const (
	// judged is how many samples it takes to say whether memory grows. The first ones are left out
	// of the first quarter: pools fill up.
	judged  = 24
	growth  = 1.10
	leeway  = 4 << 20
	skipped = 2
)

// flat compares the heap in the first and the last quarter of the samples. It reports whether
// there are enough of them.
func flat(heaps []int64) (first, last int64, ok, enough bool) {
	if len(heaps) < judged {
		return 0, 0, true, false
	}
	heaps = heaps[skipped:]
	quarter := len(heaps) / 4
	first, last = median(heaps[:quarter]), median(heaps[len(heaps)-quarter:])
	return first, last, float64(last) <= float64(first)*growth+leeway, true
}

// profile writes a heap profile to a file, for go tool pprof.
func profile(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(pprof.WriteHeapProfile(f), f.Close())
}

func median(values []int64) int64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
