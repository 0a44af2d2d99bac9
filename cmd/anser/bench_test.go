package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// benchReport is part of what "bench --json" prints.
type benchReport struct {
	Target, Method string
	RequestBytes   int `json:"request_bytes"`
	Calls, Errors  int64
	Missed         int64
	P50            float64  `json:"p50_us"`
	P999           float64  `json:"p999_us"`
	ServerCPU      *float64 `json:"server_cpu_us_per_call"`
	ClientCPU      *float64 `json:"client_cpu_us_per_call"`
}

// bench measures for the given number of seconds, and for longer if they were too few, as on a
// machine that is paused.
func bench(t *testing.T, seconds float64, args ...string) benchReport {
	t.Helper()
	var r benchReport
	out := run(t, append(append([]string{"bench"}, args...), "--seconds", fmt.Sprint(seconds), "--warmup", "0.1", "--callers", "8", "--timeout", "2m", "--json")...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r.Errors == 0 && seconds < 30 && (r.Calls == 0 || r.ClientCPU != nil && *r.ClientCPU == 0) {
		return bench(t, 10*seconds, args...)
	}
	if r.Calls == 0 || r.Errors != 0 || r.P50 <= 0 || r.P999 < r.P50 {
		t.Errorf("%+v", r)
	}
	if runtime.GOOS == "linux" && (r.ServerCPU == nil || r.ClientCPU == nil || *r.ClientCPU <= 0) {
		t.Errorf("the processor time is unknown: %s", out)
	}
	return r
}

func TestBenchServe(t *testing.T) {
	t.Parallel()
	if r := bench(t, 0.3, "--serve"); r.Method != "Hello.Say" || r.RequestBytes != 581 {
		t.Errorf("%+v", r)
	}
	if r := bench(t, 0.3, "--serve", "--payload", "10"); r.Method != "Echo.Bytes" || r.RequestBytes != 10 {
		t.Errorf("%+v", r)
	}

	server := start(t, t.TempDir(), "bench", "serve", "--listen", "127.0.0.1:0", "--json")
	var said struct {
		Address string
		PID     int
	}
	if err := json.Unmarshal([]byte(server.line("address")), &said); err != nil || said.PID != server.Process.Pid {
		t.Fatalf("%v, %+v", err, said)
	}
	if r := bench(t, 0.3, said.Address, "Hello.Say", "--rate", "200"); r.Target != said.Address || r.Calls+r.Missed < 60 || r.Missed == 0 && r.Calls%60 != 0 {
		t.Errorf("%+v", r)
	}
	out := run(t, "describe", said.Address)
	for _, method := range []string{"Hello.Say", "Echo.Bytes", "MathService.Add"} {
		if !strings.Contains(out, method) {
			t.Errorf("%s is not served:\n%s", method, out)
		}
	}
	if out, code := server.signal(os.Interrupt); code != 0 {
		t.Errorf("the server ended with %d: %s%s", code, out, server.errOut.String())
	}
}
