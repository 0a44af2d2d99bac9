package anser

import (
	"runtime"
	"testing"
	"time"
)

// A suspect's run that uses the processor is proven, and moves the method however often the process is preempted;
// runs that only look long are not. The thread's own clock decides, so that a slow machine changes nothing.
func TestBurningIsProven(t *testing.T) {
	runtime.LockOSThread() // for currentThread alone: a handler needs no thread of its own
	defer runtime.UnlockOSThread()
	burn := func() {
		for began := currentThread(); currentThread().cpu-began.cpu < 2*int64(longRun); {
		}
	}
	for _, test := range []struct {
		name string
		run  func()
		want bool
	}{{"burns", burn, true}, {"only looks long", func() {}, false}} {
		m := new(method)
		now, moved := int64(time.Hour), false
		for range 5 { // more would move it by their average
			m.calls.Add(1000)
			now += int64(time.Second)
			m.tail.mu.Lock()
			m.tail.used.preempted = -1 << 40 // so many preemptions that they explain everything
			m.tail.mu.Unlock()
			m.tail.suspect.Store(now + 1)
			r := m.begin(now, 1)
			test.run()
			m.end(&r, now+5*int64(time.Millisecond), false)
			moved = moved || !m.inline(now+5*int64(time.Millisecond))
		}
		if moved != test.want {
			t.Errorf("a method that %s: moved %v", test.name, moved)
		}
	}
}
