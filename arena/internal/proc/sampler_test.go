package proc_test

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/arena/internal/proc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell starts a shell that runs the script, and returns it with its input and output.
func shell(t *testing.T, script string) (c *exec.Cmd, in io.Writer, out io.Reader) {
	t.Helper()
	c = exec.Command("sh", "-c", script)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = c.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, in, out
}

// A shell with a child that works: the tree has the time of both, also after the child's end, and
// what they wrote.
func TestSampler(t *testing.T) {
	const script = `read line
sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; read line'
echo much more than nothing > /dev/null
echo done
read line`
	c, in, out := shell(t, script)
	s := proc.Start([]int{c.Process.Pid}, c.Process.Pid, "lo")
	began := time.Now().UnixNano()
	in.Write([]byte("go\n"))
	members := 0
	for late := began + int64(time.Minute); members != 2 && time.Now().UnixNano() < late; time.Sleep(time.Millisecond) {
		members = len(proc.Descendants(c.Process.Pid))
	}
	time.Sleep(700 * time.Millisecond) // the tree is looked for twice a second, and before the child ends
	s.Now()
	in.Write([]byte("end\n"))
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	ended := time.Now().UnixNano()
	s.Now()
	record := s.Stop()
	in.Write([]byte("end\n"))
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if members != 2 {
		t.Errorf("the tree has %d members, want 2", members)
	}
	tree := record.Trees[0]
	if cpu, ok := tree.CPU.Between(began, ended); !ok || cpu < 1e6 {
		t.Errorf("CPU time %v ns, %v", cpu, ok)
	}
	if n, ok := tree.Writes.Between(began, ended); !ok || n < 1 {
		t.Errorf("%v writes, %v", n, ok)
	}
	if n, ok := tree.WriteSum.Between(began, ended); !ok || n < 5 {
		t.Errorf("%v bytes written, %v", n, ok)
	}
	if most := tree.Resident.Max(began, ended); most < float64(os.Getpagesize()) {
		t.Errorf("%v bytes resident", most)
	}
	for name, series := range map[string]*proc.Series{"self": &record.Self, "busy": &record.Busy, "wire": &record.Wire} {
		if grown, ok := series.Between(began, ended); !ok || grown < 0 {
			t.Errorf("%s: %v, %v", name, grown, ok)
		}
	}
}

// The first sample of a process that was just started may come late, as on a busy machine, and
// what it did until then counts all the same.
func TestSamplerStarted(t *testing.T) {
	s := proc.Start(nil, os.Getpid(), "lo")
	began := time.Now()
	c, in, out := shell(t, "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; echo done; read line")
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	s.AddStarted(began, c.Process.Pid)
	record := s.Stop()
	in.Write([]byte("end\n"))
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if cpu, ok := record.Trees[0].CPU.Between(began.UnixNano(), ended.UnixNano()); !ok || cpu <= 0 {
		t.Errorf("CPU time %v ns, %v", cpu, ok)
	}
	if n, ok := record.Trees[0].Writes.Between(began.UnixNano(), ended.UnixNano()); !ok || n <= 0 {
		t.Errorf("%v writes, %v", n, ok)
	}
}
