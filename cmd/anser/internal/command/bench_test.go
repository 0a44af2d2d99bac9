package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// benchReport is the output of "bench --json".
type benchReport struct {
	Target, Method           string
	Callers, Conns           int
	Rate                     float64
	RequestBytes             int `json:"request_bytes"`
	Seconds                  float64
	Calls, Errors, Missed    int64
	ErrorCodes               map[string]int64 `json:"error_codes"`
	CallsPerS                float64          `json:"calls_per_s"`
	P50, P90, P99, P999, Max float64
	Compression              *struct {
		Algorithm                string
		Compressed, Uncompressed int64
		Ratio                    float64
		Micros                   float64 `json:"compress_us"`
	}
}

// bench measures for a fifth of a second, and for longer if no call fits into that, as on a
// machine that is paused.
func bench(t *testing.T, args ...string) (r benchReport) {
	t.Helper()
	for seconds := 0.2; r.Calls+r.Errors == 0 && seconds < 30; seconds *= 10 {
		r = benchReport{}
		run(t, append(args, "--seconds", fmt.Sprint(seconds), "--json")...).decode(t, &r)
	}
	return r
}

func TestBench(t *testing.T) {
	at := serve(t)
	args := []string{"bench", at, "Arith.Mul", "--data", `{"A": 7, "B": 8}`, "--callers", "4", "--seconds", "0.2", "--warmup", "0.05"}
	r := bench(t, args...)
	if r.Target != at || r.Method != "Arith.Mul" || r.Callers != 4 || r.Conns != 2 || r.RequestBytes != 16 || r.Calls == 0 || r.Errors != 0 {
		t.Errorf("%+v", r)
	}
	r = bench(t, append(args, "--rate", "500")...)
	if r.Rate != 500 || r.Calls+r.Missed < 100 || r.Missed == 0 && r.Calls%100 != 0 {
		t.Errorf("%d calls in 0.2 s at a rate of 500: %+v", r.Calls, r)
	}
	run(t, args...).expect(t, 0, "Arith.Mul at "+at, "4 callers, 2 connections", "CALLS/S", "P99.9", "CPU a call: client")
}

func TestBenchCompressed(t *testing.T) {
	at := serve(t)
	args := []string{"bench", at, "Arith.Mul", "--data", `{"A": 7, "B": 8}`, "--callers", "4", "--seconds", "0.2", "--warmup", "0.05"}
	var r benchReport
	run(t, append(args, "--json", "--compress", "lz4,forced")...).decode(t, &r)
	z := r.Compression
	if z == nil || z.Algorithm != "lz4" || z.Compressed < r.Calls || z.Uncompressed != 0 || z.Ratio <= 1 || z.Micros <= 0 || r.Errors != 0 {
		t.Errorf("%+v, %+v", r, z)
	}
	r = benchReport{}
	run(t, append(args, "--json", "--compress", "lz4")...).decode(t, &r)
	if z := r.Compression; z == nil || z.Uncompressed < r.Calls || z.Compressed != 0 || z.Ratio != 0 {
		t.Errorf("16 bytes, dynamic: %+v", z)
	}
	r = benchReport{}
	run(t, append(args, "--json")...).decode(t, &r)
	if r.Compression != nil {
		t.Errorf("without the flag: %+v", r.Compression)
	}
	run(t, append(args, "--compress", "zstd,forced")...).expect(t, 0, "zstd: ", " requests compressed, 0 not; to ")
	run(t, append(args, "--compress", "zip")...).expect(t, 2, `compression "zip" is not known`)
}

// procsReport is the output of "bench --procs --json".
type procsReport struct {
	CPUs      int
	InProcess bool    `json:"in_process"`
	LineTime  float64 `json:"line_ns"`
	Steps     []procsStep
}

type procsStep struct {
	benchReport
	Procs      int
	Efficiency float64
	CPU        *float64 `json:"client_cpu_us_per_call"`
	LockWait   float64  `json:"lock_wait_us_per_call"`
	Locks      []struct {
		Function string
		PerCall  float64 `json:"wait_us_per_call"`
		Waits    int64
	}
}

func TestBenchProcs(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	folder := filepath.Join(t.TempDir(), "new")
	short := []string{"--callers", "8", "--seconds", "0.2", "--warmup", "0.05"}
	var r procsReport
	for seconds := 0.2; ; seconds *= 2 { // in which a busy machine may not end a call
		args := append([]string{"bench", "--serve", "--procs", "1,3", "--profiles", folder, "--json"}, short...)
		r = procsReport{}
		run(t, append(args, "--seconds", fmt.Sprint(seconds))...).decode(t, &r)
		if seconds > 60 || !slices.ContainsFunc(r.Steps, func(st procsStep) bool { return st.Calls == 0 }) {
			break
		}
	}
	if !r.InProcess || r.CPUs != before || r.LineTime <= 0 || len(r.Steps) != 2 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []struct{ procs, conns int }{{1, 2}, {3, 3}} {
		st := r.Steps[i]
		if st.Procs != want.procs || st.Conns != want.conns || st.Calls == 0 || st.Errors != 0 || st.Method != "Hello.Say" {
			t.Errorf("step %d: %+v", i, st)
		}
		if i == 0 && st.Efficiency != 1 || st.Efficiency <= 0 {
			t.Errorf("step %d has the efficiency %v", i, st.Efficiency)
		}
		var sum float64
		for _, l := range st.Locks {
			if sum += l.PerCall; l.Function == "" || l.Waits < 1 {
				t.Errorf("step %d: %+v", i, l)
			}
		}
		if len(st.Locks) < 8 && (st.LockWait-sum > 0.01 || sum-st.LockWait > 0.01) {
			t.Errorf("step %d: %v µs of all locks, %v of each", i, st.LockWait, sum)
		}
		for _, kind := range []string{"cpu", "mutex", "block"} {
			if f, err := os.Stat(filepath.Join(folder, fmt.Sprintf("%s-%d.pprof", kind, want.procs))); err != nil || f.Size() == 0 {
				t.Errorf("the profile %s of step %d: %v", kind, i, err)
			}
		}
	}
	if now := runtime.GOMAXPROCS(0); now != before {
		t.Errorf("%d processors after it, %d before", now, before)
	}

	at := serve(t)
	args := append([]string{"bench", at, "Arith.Mul", "--data", `{"A": 7, "B": 8}`, "--procs", "2", "--conns", "3"}, short...)
	run(t, args...).expect(t, 0, "Arith.Mul at "+at, "8 callers, requests of 16 bytes", "PROCS", "EFFICIENCY", "LOCKS A CALL", "100 %")
	r = procsReport{}
	run(t, append(args, "--json")...).decode(t, &r)
	if r.InProcess || r.LineTime <= 0 || len(r.Steps) != 1 || r.Steps[0].Conns != 3 || r.Steps[0].Target != at {
		t.Errorf("%+v", r)
	}
	run(t, "bench", "--serve", "--procs", fmt.Sprint(2*before), "--callers", "1", "--seconds", "0.1", "--warmup", "0").
		expect(t, 0, "of a server in this process", "there are only")

	r = procsReport{}
	run(t, append([]string{"bench", "--serve", "Echo.Bytes", "--payload", "5", "--procs", "all", "--json"}, short...)...).decode(t, &r)
	for i, st := range r.Steps {
		if last := i == len(r.Steps)-1; last != (st.Procs == before) || st.Procs != min(1<<i, before) {
			t.Errorf("step %d of %d has %d of %d processors", i, len(r.Steps), st.Procs, before)
		}
	}

	for _, wrong := range []string{"0", "1,x", "2,,4", "5000"} {
		run(t, "bench", "--serve", "--procs", wrong).expect(t, 2, "use numbers of processors such as 1,2,4, or all")
	}
	run(t, "bench", "--serve", "--profiles", folder).expect(t, 2, "--profiles belongs to --procs")
	run(t, "bench", unused(t), "Hello.Say", "--procs", "1,2").expect(t, 3, "no server is listening")
	run(t, "bench", at, "Test.Fail", "--procs", "1").expect(t, 6, "there is no such thing")
}

func TestBenchErrors(t *testing.T) {
	at, none := serve(t), unused(t)
	run(t, "bench", none, "Hello.Say").expect(t, 3, "no server is listening")
	run(t, "bench", at, "Hello.Say").expect(t, 4, "not served here", "anser describe")
	run(t, "bench", at, "Test.Fail").expect(t, 6, "there is no such thing")
	run(t, "bench", at, "Arith.Mul", "--payload", "3").expect(t, 4, "decode the request with raw")
	run(t, "bench", at).expect(t, 2, "arguments are missing")
	run(t, "bench", "--serve", at, "Hello.Say").expect(t, 2, "one argument too many")
	run(t, "bench", at, "Arith.Mul", "--callers", "0").expect(t, 2, "--callers 0: at least 1")
	run(t, "bench", at, "Arith.Mul", "--conns", "0").expect(t, 2, "--conns 0: at least 1")
	run(t, "bench", at, "Arith.Mul", "--rate", "-1").expect(t, 2, "--rate -1")
	run(t, "bench", at, "Arith.Mul", "--seconds", "0").expect(t, 2, "--seconds must be more than 0")
	run(t, "bench", at, "Arith.Mul", "--data", "{").expect(t, 2, "not JSON")
	run(t, "bench", at, "Arith.Mul", "--data", "{}", "--payload", "3").expect(t, 2, "use one of them")
}
