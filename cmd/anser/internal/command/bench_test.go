package command_test

import (
	"fmt"
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

func TestBenchErrors(t *testing.T) {
	at, none := serve(t), unused(t)
	run(t, "bench", none, "Hello.Say").expect(t, 3, "nobody is listening")
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
