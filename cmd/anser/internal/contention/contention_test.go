package contention_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/cmd/anser/internal/contention"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hold makes another goroutine wait for the lock.
func hold(mu *sync.Mutex) {
	var wg sync.WaitGroup
	locked := 1
	mu.Lock()
	waiting := make(chan struct{})
	wg.Go(func() {
		close(waiting)
		mu.Lock()
		locked++
		mu.Unlock()
	})
	<-waiting
	for range 100 { // most likely the goroutine waits by then
		runtime.Gosched()
	}
	locked++
	mu.Unlock()
	wg.Wait()
}

func TestWaitsAreAttributed(t *testing.T) {
	before := runtime.SetMutexProfileFraction(-1)
	r := contention.Start()
	var mu sync.Mutex
	var found *contention.Lock
	for range 100 {
		for range 100 {
			hold(&mu)
		}
		for _, l := range r.Stop() {
			if strings.HasSuffix(l.Function, "contention_test.hold") {
				found = &l
			}
		}
		if found != nil {
			break
		}
		r = contention.Start()
	}
	if found == nil {
		t.Fatal("10,000 times a goroutine should have waited for a lock that hold held, and no wait was seen")
	}
	if found.Waits < 1 || found.Time <= 0 {
		t.Errorf("%+v", *found)
	}
	if now := runtime.SetMutexProfileFraction(-1); now != before {
		t.Errorf("the fraction of the process is %d after it, %d before", now, before)
	}
	for _, l := range contention.Start().Stop() {
		if l == *found {
			t.Errorf("a recording has the waits before it: %+v", l)
		}
	}
}
