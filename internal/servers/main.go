package servers

import (
	"context"
	"flag"
	"log"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// Main is the TestMain of a package whose tests share servers, which start starts. The cleanups
// registered on its t run after the last test, and after a check for leaked goroutines. Fuzzing
// needs no servers, and each of its workers would start them, so it runs without.
func Main(m *testing.M, start func(t testing.TB)) { os.Exit(runTests(m.Run, start)) }

// looks is how often leaked goroutines are searched for. Each search sleeps twenty times, half a
// second in all, in which a goroutine that was told to end may not have run yet.
const looks = 4

func runTests(run func() int, start func(t testing.TB)) (code int) {
	if flag.Parse(); flag.Lookup("test.fuzz").Value.String() != "" {
		return run()
	}
	t := new(whole)
	defer t.end()
	if !t.begin(start) {
		return 1
	}
	if code := run(); code != 0 {
		return code
	}
	var err error
	for range looks {
		if err = goleak.Find(); err == nil {
			return 0
		}
	}
	log.Print(err)
	return 1
}

// whole is a test that includes all tests of a package. It has the methods needed to start
// servers.
type whole struct {
	testing.TB // nil: it provides only the unexported method

	mu       sync.Mutex // guards cleanups
	cleanups []func()
}

// begin calls start and reports whether it completed.
func (w *whole) begin(start func(testing.TB)) (ok bool) {
	done := make(chan struct{})
	go func() { // Fatal ends a goroutine, as in every test
		defer close(done)
		start(w)
		ok = true
	}()
	<-done
	return ok
}

func (w *whole) end() {
	for _, f := range slices.Backward(w.cleanups) {
		f()
	}
}

// Helper implements testing.TB.
func (w *whole) Helper() {}

// Context implements testing.TB.
func (w *whole) Context() context.Context { return context.Background() }

// Cleanup implements testing.TB.
func (w *whole) Cleanup(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cleanups = append(w.cleanups, f)
}

// TempDir implements testing.TB.
func (w *whole) TempDir() string {
	dir, err := os.MkdirTemp("", "anser-test-")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Fatal implements testing.TB.
func (w *whole) Fatal(args ...any) {
	log.Print(args...)
	runtime.Goexit()
}

// Fatalf implements testing.TB.
func (w *whole) Fatalf(format string, args ...any) {
	log.Printf(format, args...)
	runtime.Goexit()
}
