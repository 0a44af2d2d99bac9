package sysusage_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/sysusage"
)

func TestUsageGrows(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process, thread := sysusage.CurrentProcess(), sysusage.CurrentThread() // the process has begun before the thread
	if thread.ID == 0 || process.CPU == 0 {
		t.Fatalf("%+v and %+v were not read", thread, process)
	}
	for end := time.Now().Add(time.Minute); sysusage.CurrentThread().CPU-thread.CPU < int64(time.Millisecond); {
		if time.Now().After(end) {
			t.Fatal("the thread has used no processor for a minute")
		}
	}
	if now := sysusage.CurrentThread(); now.ID != thread.ID {
		t.Errorf("a locked goroutine is on thread %d, was on %d", now.ID, thread.ID)
	}
	if used := sysusage.CurrentProcess().CPU - process.CPU; used < int64(time.Millisecond) {
		t.Errorf("the process has used %v, one of its threads a millisecond", time.Duration(used))
	}
}
