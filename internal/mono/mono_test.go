package mono_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/mono"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock of a bubble begins in the year 2000
		began, wall := mono.Now(), time.Now()
		if began <= 0 {
			t.Errorf("it is %d: the zero time is not in the past", began)
		}
		time.Sleep(time.Second)
		if d := mono.Since(began); d != time.Second {
			t.Errorf("a second later %v have passed", d)
		}
		if d := mono.Until(began.Add(time.Minute)); d != 59*time.Second {
			t.Errorf("a minute after the beginning is in %v", d)
		}
		if now := mono.Now(); now.Sub(began) != time.Second || began.Sub(now) != -time.Second || now.Add(-time.Second) != began {
			t.Errorf("%d and %d do not differ by a second", now, began)
		}
		if w := began.Wall(); !w.Equal(wall) {
			t.Errorf("the time is %v on the wall clock, want %v", w, wall)
		}
	})
}

func TestAtomic(t *testing.T) {
	var a mono.Atomic
	if a.Load() != 0 {
		t.Error("the zero value is not the zero time")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				for {
					if old := a.Load(); a.CompareAndSwap(old, old.Add(1)) {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	if n := a.Load(); n != 4000 {
		t.Errorf("4000 nanoseconds were added, and it is %d", n)
	}
}
