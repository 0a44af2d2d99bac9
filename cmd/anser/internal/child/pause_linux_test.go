package child_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/child"
)

// A paused process does not end on SIGTERM until it is resumed.
func TestPause(t *testing.T) {
	g := child.NewGroup()
	defer g.Close()
	c := start(t, g, "serve")
	defer c.End(time.Minute)
	var said struct{ PID int }
	if err := c.Ready(t.Context(), &said); err != nil {
		t.Fatal(err)
	}
	if err := c.Pause(); err != nil {
		t.Fatal(err)
	}
	// Of two pending signals the lower number is delivered first, which is not SIGSTOP.
	for end := time.Now().Add(time.Minute); !stopped(t, c.PID()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the process does not stand still")
		}
	}
	c.Stop()
	select {
	case <-c.Done():
		t.Error("a process that stands still has ended")
	case <-time.After(50 * time.Millisecond):
	}
	if err := c.Resume(); err != nil {
		t.Error(err)
	}
	<-c.Done()
	if err := c.Resume(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a process that has ended goes on: %v", err)
	}
}

// stopped reports whether the process is paused.
func stopped(t *testing.T, pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(stat, []byte(") T "))
}
