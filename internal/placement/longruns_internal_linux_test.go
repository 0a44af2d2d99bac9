package placement

import (
	"runtime"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysusage"
)

// A suspect's run that uses the processor is proven, and moves the method however often the process
// is preempted; runs that only look long are not. The thread's own clock decides, so that a slow
// machine changes nothing.
func TestBurningIsProven(t *testing.T) {
	runtime.LockOSThread() // for CurrentThread alone: a handler needs no thread of its own
	defer runtime.UnlockOSThread()
	burn := func() {
		for began := sysusage.CurrentThread(); sysusage.CurrentThread().CPU-began.CPU < 2*int64(longRun); {
		}
	}
	for _, test := range []struct {
		name string
		run  func()
		want bool
	}{{"burns", burn, true}, {"only looks long", func() {}, false}} {
		var l longRuns
		now, calls, moved := mono.Time(time.Hour), int64(0), false
		for range 5 {
			calls += 1000
			now = now.Add(time.Second)
			l.suspect.Store(now.Add(1))
			r := l.begin(now, 1)
			test.run()
			var proven int64
			if r.proven(5 * time.Millisecond) {
				proven = r.Weight
			}
			// There are more preemptions each time than could explain any long run.
			used := sysusage.Process{Preempted: calls << 20}
			moved = l.note(now, calls, time.Microsecond, r.Weight, proven, used) > 0 || moved
		}
		if moved != test.want {
			t.Errorf("a method that %s: moved %v", test.name, moved)
		}
	}
}
