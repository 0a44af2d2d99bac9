// Package contention tells for which locks the goroutines of this process wait.
package contention

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// fraction is the number of waits of which about one is recorded.
const fraction = 10

// Recording is under way from Start until Stop. There may be one at a time.
type Recording struct {
	fraction int // of the process before
	before   map[runtime.StackRecord]runtime.BlockProfileRecord
}

// Lock is what goroutines have waited for while a function held it: a mutex, or a lock of the
// runtime.
type Lock struct {
	Function string // that unlocked it
	Waits    int64
	Time     time.Duration // sum of all waits
}

// Start begins to record waits.
func Start() *Recording {
	r := &Recording{fraction: runtime.SetMutexProfileFraction(fraction), before: make(map[runtime.StackRecord]runtime.BlockProfileRecord)}
	for _, rec := range records() {
		r.before[rec.StackRecord] = rec
	}
	return r
}

// Stop ends the recording, and returns the locks with waits, those of the longest ones first.
func (r *Recording) Stop() []Lock {
	runtime.SetMutexProfileFraction(r.fraction)
	by := make(map[string]*Lock)
	tick := tickTime()
	for _, rec := range records() {
		old := r.before[rec.StackRecord]
		waits, cycles := rec.Count-old.Count, rec.Cycles-old.Cycles
		if waits <= 0 {
			continue
		}
		name := holder(rec.Stack())
		l := by[name]
		if l == nil {
			l = &Lock{Function: name}
			by[name] = l
		}
		l.Waits += waits
		l.Time += time.Duration(float64(cycles) * tick)
	}
	list := make([]Lock, 0, len(by))
	for _, l := range by {
		list = append(list, *l)
	}
	slices.SortFunc(list, func(a, b Lock) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Function, b.Function))
	})
	return list
}

// records returns the profile of mutexes since the process began.
func records() []runtime.BlockProfileRecord {
	for size := 256; ; {
		list := make([]runtime.BlockProfileRecord, size)
		n, ok := runtime.MutexProfile(list)
		if ok {
			return list[:n]
		}
		size = n + n/4
	}
}

// tickTime returns the nanoseconds of a cycle of the profile. The runtime tells it only in the text
// of a profile.
func tickTime() float64 {
	var text bytes.Buffer
	if err := pprof.Lookup("mutex").WriteTo(&text, 1); err != nil {
		return 1
	}
	var perSecond float64
	_, after, _ := strings.Cut(text.String(), "cycles/second=")
	if _, err := fmt.Sscan(after, &perSecond); err != nil || perSecond <= 0 {
		return 1
	}
	return 1e9 / perSecond
}

// holder returns the function that unlocked a lock, from the stack of that moment.
func holder(stack []uintptr) string {
	frames := runtime.CallersFrames(stack)
	for {
		f, more := frames.Next()
		if !more || !isUnlocking(f.Function) {
			return strings.TrimPrefix(f.Function, "github.com/anser-rpc/")
		}
	}
}

// isUnlocking reports whether a function is a part of unlocking.
func isUnlocking(name string) bool {
	for _, prefix := range []string{"sync.", "internal/sync.", "runtime.unlock", "runtime.semrelease"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
