package child_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/arena/internal/child"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/anser-rpc/anser/arena/internal/child.init.func1.1"))
}

func start(t *testing.T, script string) *child.Child {
	t.Helper()
	c, err := child.Start([]string{"sh", "-c", script})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLine(t *testing.T) {
	c := start(t, `echo '{"a": 1}'; echo more; echo words >&2; exit 3`)
	if line := <-c.Line(); string(line) != "{\"a\": 1}\n" {
		t.Errorf("it printed %q", line)
	}
	// The output of an ended process can be read until its end is requested.
	for range 100 {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(c.PID()) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), ") Z ") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	<-c.Done()
	if err := c.Failure(); err == nil || err.Error() != "ended with exit code 3" {
		t.Errorf("failure: %v", err)
	}
	if said := c.Said(); said != "words" {
		t.Errorf("it said %q", said)
	}
	c.Kill() // is too late, and does nothing
	if c.End(time.Minute) {
		t.Error("what has ended is late")
	}
}

func TestNoLine(t *testing.T) {
	c := start(t, "exit 0")
	if line, ok := <-c.Line(); ok {
		t.Errorf("it printed %q", line)
	}
	<-c.Done()
	if err := c.Failure(); err != nil {
		t.Errorf("failure: %v", err)
	}
}

func TestEnd(t *testing.T) {
	c := start(t, `trap 'exit 0' TERM; echo; while :; do sleep 0.01; done`)
	<-c.Line()
	if late := c.End(patience); late || c.Failure() != nil {
		t.Errorf("late: %v, failure: %v", late, c.Failure())
	}
	c = start(t, `trap '' TERM; echo; while :; do sleep 0.01; done`)
	<-c.Line()
	if late := c.End(50 * time.Millisecond); !late || !strings.Contains(c.Failure().Error(), "killed") {
		t.Errorf("late: %v, failure: %v", late, c.Failure())
	}
}

// What a process started ends with it, and does not keep its end from being seen.
func TestDescendants(t *testing.T) {
	c := start(t, `sleep 1000 & echo $!; exit 0`)
	pid := strings.TrimSpace(string(<-c.Line()))
	began := time.Now()
	<-c.Done()
	if took := time.Since(began); took > 10*patience { // and not after the thousand seconds
		t.Errorf("the end was seen after %v", took)
	}
	exec.Command("kill", pid).Run() // it was left behind by a process that ended by itself

	c = start(t, `sleep 1000 & echo $!; wait`)
	pid = strings.TrimSpace(string(<-c.Line()))
	c.Kill()
	if !ends(pid) {
		t.Errorf("process %s lives on", pid)
	}
}

// patience is how long anything may take that is not a matter of time. The machine may be busy.
const patience = time.Minute

// ends waits until a process has ended, and reports whether it has.
func ends(pid string) bool {
	for late := time.Now().Add(patience); !gone(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			return false
		}
	}
	return true
}

// gone reports whether a process has ended, waited for or not.
func gone(pid string) bool {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || strings.Contains(string(text), ") Z ")
}

func TestTail(t *testing.T) {
	c := start(t, `i=0; while [ $i -lt 1000 ]; do echo "line $i" >&2; i=$((i+1)); done`)
	<-c.Done()
	if said := c.Said(); len(said) > 2<<10 || !strings.HasSuffix(said, "line 999") {
		t.Errorf("%d bytes: %q", len(said), said)
	}
}

func TestExecutable(t *testing.T) {
	if err := child.Executable([]string{"sh"}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"no-such-program", "/no/such/program"} {
		if err := child.Executable([]string{name}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := child.Start([]string{name}); err == nil {
			t.Errorf("%s was started", name)
		}
	}
}

// A child does not outlive the process that started it, however that ends.
func TestParentKilled(t *testing.T) {
	if os.Getenv("ARENA_TEST_PARENT") != "" {
		c, err := child.Start([]string{"sh", "-c", "echo $$; exec sleep 1000"})
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.Write(<-c.Line())
		select {}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, "-test.run=^TestParentKilled$")
	parent.Env = append(os.Environ(), "ARENA_TEST_PARENT=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 64)
	n, err := out.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(text[:n]))
	parent.Process.Signal(syscall.SIGKILL)
	parent.Wait()
	if !ends(pid) {
		exec.Command("kill", "-9", pid).Run()
		t.Errorf("process %s outlived its parent", pid)
	}
}
