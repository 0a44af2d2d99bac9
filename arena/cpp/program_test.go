package cpp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// result is what a client prints.
type result struct {
	Contract   int    `json:"contract"`
	Calls      int64  `json:"calls"`
	Errors     int64  `json:"errors"`
	Wrong      int64  `json:"wrong"`
	FirstError string `json:"first_error"`
	Began      int64  `json:"began_unix_ns"`
	Ended      int64  `json:"ended_unix_ns"`
	HDR        string `json:"hdr"`

	latency *hdrhistogram.Histogram
}

func decode(t *testing.T, line []byte) *result {
	t.Helper()
	r := new(result)
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		t.Fatalf("%v: %q", err, line)
	}
	if rest, _ := bytes.CutPrefix(line[d.InputOffset():], []byte("\n")); len(rest) > 0 {
		t.Fatalf("more than one line: %q", rest)
	}
	h, err := hdrhistogram.Decode([]byte(r.HDR))
	if err != nil {
		t.Fatal(err)
	}
	if r.latency = h; h.TotalCount() != r.Calls || r.Contract != 1 {
		t.Fatalf("%d latencies of %d calls, contract %d", h.TotalCount(), r.Calls, r.Contract)
	}
	return r
}

// client runs the client of testdata/program.cpp, which makes no network calls.
func client(t *testing.T, program, mode string, flags ...string) *result {
	t.Helper()
	run := exec.Command(program, append([]string{"client", "--addr", "127.0.0.1:1", "--mode", mode}, flags...)...)
	run.Stderr = os.Stderr
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%v: %v", run, err)
	}
	return decode(t, out)
}

// measured runs the client for the given number of seconds, and for longer if no call ended in
// them, as on a machine that is paused. It returns the actual number.
func measured(t *testing.T, program, mode string, seconds float64, flags ...string) (r *result, lasted float64) {
	t.Helper()
	for lasted = seconds; ; lasted *= 10 {
		r = client(t, program, mode, append(flags, "--seconds="+strconv.FormatFloat(lasted, 'f', -1, 64))...)
		if r.Calls+r.Errors+r.Wrong > 0 || lasted > 10*seconds {
			return r, lasted
		}
	}
}

// Bounds are on one side where a busy machine could move the other.
func TestLoad(t *testing.T) {
	program := filepath.Join(programs, "program")
	for _, mode := range []string{"threads", "machines"} {
		t.Run(mode+" in a closed loop", func(t *testing.T) {
			r, seconds := measured(t, program, mode, 0.4, "--callers=3", "--warmup", "0.1")
			if r.Calls < 1 || float64(r.Calls) > 3000*seconds || r.Errors+r.Wrong != 0 {
				t.Errorf("%d calls of a millisecond by 3 callers in %g s, %d errors, %d wrong", r.Calls, seconds, r.Errors, r.Wrong)
			}
			if got := time.Duration(r.Ended - r.Began); got != time.Duration(seconds*float64(time.Second)) {
				t.Errorf("measured for %v", got)
			}
			if least := time.Duration(r.latency.Min()); least < 999*time.Microsecond {
				t.Errorf("a call of a millisecond took %v", least)
			}
		})
		t.Run(mode+" with a number of calls", func(t *testing.T) {
			r := client(t, program, mode, "--callers", "4", "--window", "2", "--warmup", "0", "--calls", "100")
			if r.Calls != 100 || r.Ended <= r.Began {
				t.Errorf("%d calls in %v", r.Calls, time.Duration(r.Ended-r.Began))
			}
		})
		t.Run(mode+" in an open loop", func(t *testing.T) {
			r, seconds := measured(t, program, mode, 0.5, "--callers", "4", "--rate", "200", "--warmup", "0")
			if r.Calls < 1 || float64(r.Calls) > 200*seconds {
				t.Errorf("%d calls at 200/s in %g s", r.Calls, seconds)
			}
		})
		t.Run(mode+" whose turn never comes", func(t *testing.T) {
			began := time.Now()
			r := client(t, program, mode, "--callers", "2", "--rate", "0.01", "--warmup", "0", "--seconds", "0.2")
			if took := time.Since(began); r.Calls != 1 || took < 200*time.Millisecond || took > 50*time.Second {
				t.Errorf("%d calls in %v, one is due", r.Calls, took)
			}
		})
	}
	for _, mode := range []string{"threads", "machines"} {
		t.Run(mode+" when the calls are made", func(t *testing.T) {
			began := time.Now()
			r := client(t, program, mode, "--callers", "3", "--rate", "0.02", "--warmup", "0", "--calls", "1")
			if took := time.Since(began); r.Calls != 1 || took > 40*time.Second {
				t.Errorf("%d calls in %v, 1 was asked for", r.Calls, took)
			}
		})
	}
	t.Run("a stall counts for the calls that were due", func(t *testing.T) {
		// The tenth call stalls for 200 ms, and about 19 become due meanwhile, if the machine is
		// fast enough.
		r := client(t, program, "stalling", "--rate", "100", "--warmup", "0", "--seconds", "1")
		for try := 0; try < 5 && r.Calls < 50; try++ {
			r = client(t, program, "stalling", "--rate", "100", "--warmup", "0", "--seconds", "1")
		}
		if late := r.latency.CumulativeDistribution(); r.latency.ValueAtQuantile(95) < int64(50*time.Millisecond) {
			t.Errorf("p95 %v of %d calls: %v", time.Duration(r.latency.ValueAtQuantile(95)), r.Calls, late)
		}
	})
	t.Run("wrong replies", func(t *testing.T) {
		r, _ := measured(t, program, "wrong", 0.3, "--warmup", "0")
		if r.Calls != 0 || r.Errors != 0 || r.Wrong < 1 {
			t.Errorf("%d calls, %d errors, %d wrong", r.Calls, r.Errors, r.Wrong)
		}
	})
	for mode, text := range map[string]string{"failing": `no "answer"?\ ?`, "failing-machines": "refused"} {
		t.Run(mode, func(t *testing.T) {
			r, seconds := measured(t, program, mode, 0.5, "--callers", "2", "--warmup", "0")
			if r.Calls != 0 || r.Wrong != 0 || r.FirstError != text {
				t.Errorf("%d calls, %d wrong, first error %q", r.Calls, r.Wrong, r.FirstError)
			}
			if r.Errors < 1 || float64(r.Errors) > 2*(100*seconds+1) {
				t.Errorf("%d errors in %g s by 2 callers that pause for 10 ms", r.Errors, seconds)
			}
		})
	}
}

func TestSignalEndsThePrograms(t *testing.T) {
	program := filepath.Join(programs, "program")
	for _, args := range [][]string{
		{"server", "--mode", "threads", "--addr", "127.0.0.1:1"},
		{"client", "--mode", "threads", "--addr", "127.0.0.1:1", "--seconds", "600"},
		{"client", "--mode", "machines", "--addr", "127.0.0.1:1", "--seconds", "600"},
	} {
		run := exec.Command(program, args...)
		var out bytes.Buffer
		run.Stdout = &out
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		waitUntilBlocked(t, run.Process.Pid)
		if err := run.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		err := run.Wait()
		var exit *exec.ExitError
		switch {
		case out.Len() > 0:
			t.Errorf("%v printed %q", args, &out)
		case args[0] == "server" && err != nil:
			t.Errorf("%v: %v", args, err)
		case args[0] == "client" && (!errors.As(err, &exit) || exit.ExitCode() != 1):
			t.Errorf("%v: %v, want exit code 1", args, err)
		}
	}
}

// waitUntilBlocked returns once the program blocks SIGTERM. It ignores SIGPIPE right after that.
func waitUntilBlocked(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(string(status), "SigIgn:\t")
		line, _, _ = strings.Cut(line, "\n")
		if ignored, err := strconv.ParseUint(line, 16, 64); err == nil && ignored&(1<<(syscall.SIGPIPE-1)) != 0 {
			return
		}
	}
	t.Fatal("the program does not start")
}

func TestCommandLine(t *testing.T) {
	program := filepath.Join(programs, "program")
	for args, want := range map[string]string{
		"":                                                "server|client",
		"server":                                          "host:port",
		"server --addr 127.0.0.1":                         "host:port",
		"server --addr 127.0.0.1:1":                       "one of threads, machines",
		"client --mode threads":                           "host:port",
		"client --addr a:1 --bogus":                       `"--bogus" is unknown`,
		"client --addr a:1 extra":                         `"extra"`,
		"client --addr a:1 --callers":                     "give a value",
		"client --addr a:1 --callers 0":                   "at least 1",
		"client --addr a:1 --callers x":                   "give a number",
		"client --addr a:1 --calls 1.5":                   "whole number",
		"client --addr a:1 --conns -1":                    "nothing is negative",
		"client --addr a:1 --rate nan":                    "out of range",
		"client --addr a:1 --workload mul --mode threads": "say or add",
	} {
		out, err := exec.Command(program, strings.Fields(args)...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.HasPrefix(string(out), "test") ||
			!strings.Contains(string(out), want) {
			t.Errorf("%q: %v: %q, want exit code 2 and %q", args, err, out, want)
		}
	}
}
