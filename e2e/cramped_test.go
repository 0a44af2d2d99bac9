package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// The race detector takes up to ten times the memory itself.
var crampedMemory = 256 << 20 * raceFactor

const (
	crampedBody    = 1 << 20
	crampedCallers = 256 // each has a MiB under way: twice what the process has, with the replies
	crampedConns   = 64
)

// cramped is what a server did that has little memory.
type cramped struct {
	ok, refused, failed int64
	first               error // of those that failed
	peak                int64 // most bytes that the server used, 0 if that is not known
	group               bool  // the limit was that of a cgroup, so that the system would have killed the server
}

// A server with 256 MiB of memory that is offered more requests than fit refuses some of them, and lives. Where the test
// may make cgroups (version 1, on Linux) the system would kill it otherwise.
func TestLittleMemory(t *testing.T) {
	f := overfill(t, faultTime(3*time.Second, 60*time.Second))
	t.Logf("%d calls, %d refused, %d failed; the most that was used: %d MiB, with a cgroup: %v", f.ok, f.refused, f.failed, f.peak>>20, f.group)
	if f.ok == 0 || f.refused == 0 || f.failed > 0 {
		t.Errorf("want calls that succeed and others that are refused; the first other error: %v", f.first)
	}
	if f.peak > int64(crampedMemory) {
		t.Errorf("the server used %d MiB", f.peak>>20)
	}
}

func overfill(t *testing.T, lasts time.Duration) (f cramped) {
	t.Helper()
	c := config{Address: freeAddress()}
	c.Dir, f.group = memoryGroup(t, crampedMemory)
	if !f.group || raceFactor > 1 {
		c.Ledger = strconv.Itoa(crampedMemory / raceFactor / 8) // what the server would find out by itself
	}
	server := start(t, "plain", c)
	clients := make([]*anser.Client, crampedConns)
	for i := range clients {
		clients[i] = apart(t, c.Address, anser.Timeout(bound), anser.ConnectTimeout(bound), anser.HandshakeTimeout(bound))
		if err := echo(context.Background(), clients[i], "Plain.Echo", 1); err != nil {
			t.Fatal(err)
		}
	}
	var ok, refused, failed atomic.Int64
	var first sync.Once
	var wg sync.WaitGroup
	end := time.Now().Add(lasts)
	for i := range crampedCallers {
		wg.Go(func() {
			for time.Now().Before(end) {
				err := echo(context.Background(), clients[i%crampedConns], "Plain.Pile", crampedBody, anser.Fail(anser.Failfast))
				switch e, is := errors.AsType[*anser.Error](err); {
				case err == nil:
					ok.Add(1)
				case is && e.Code == anser.ResourceExhausted && e.Outcome == anser.Refused && strings.Contains(e.Message, "anser.MaxMemory"):
					refused.Add(1)
					time.Sleep(10 * time.Millisecond)
				default:
					failed.Add(1)
					first.Do(func() { f.first = err })
				}
			}
		})
	}
	wg.Wait()
	f.ok, f.refused, f.failed = ok.Load(), refused.Load(), failed.Load()
	f.peak = server.peakMemory()
	select {
	case <-server.exited:
		t.Errorf("the server has ended: %v", server.err)
	default:
	}
	return f
}

// memoryGroup makes a cgroup of version 1 with a limit, if that is possible here, and returns its folder.
func memoryGroup(t *testing.T, limit int) (dir string, ok bool) {
	t.Helper()
	dir = fmt.Sprintf("/sys/fs/cgroup/memory/anser-test-%d", os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Log("no cgroup:", err)
		return "", false
	}
	t.Cleanup(func() {
		eventually(t, "the cgroup is gone", func() bool { return os.Remove(dir) == nil })
	})
	if err := os.WriteFile(dir+"/memory.limit_in_bytes", []byte(strconv.Itoa(limit)), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, true
}

// peakMemory is the most memory that a process has had. It is known on Linux only.
func (p *process) peakMemory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[0], 10, 64)
	return n << 10
}
