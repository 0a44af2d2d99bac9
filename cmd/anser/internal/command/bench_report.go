package command

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/cputime"
	"github.com/anser-rpc/anser/cmd/anser/internal/load"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

// benchReport is the output of --json. Unknown CPU times are left out.
type benchReport struct {
	Target       string            `json:"target"`
	Method       string            `json:"method"`
	Callers      int               `json:"callers"`
	Conns        int               `json:"conns"`
	Rate         float64           `json:"rate,omitempty"`
	RequestBytes int               `json:"request_bytes"`
	Seconds      float64           `json:"seconds"`
	Calls        int64             `json:"calls"`
	CallsPerS    float64           `json:"calls_per_s"`
	Errors       int64             `json:"errors"`
	ErrorCodes   map[string]int64  `json:"error_codes,omitempty"`
	Missed       int64             `json:"missed,omitempty"`
	P50          float64           `json:"p50_us"`
	P90          float64           `json:"p90_us"`
	P99          float64           `json:"p99_us"`
	P999         float64           `json:"p999_us"`
	Max          float64           `json:"max_us"`
	ClientCPU    *float64          `json:"client_cpu_us_per_call,omitempty"`
	ServerCPU    *float64          `json:"server_cpu_us_per_call,omitempty"`
	Compression  *benchCompression `json:"compression,omitempty"`
}

// benchCompression describes how the requests were sent, including the first one and the warm-up.
type benchCompression struct {
	Algorithm string  `json:"algorithm"`
	Packed    int64   `json:"compressed"`
	Plain     int64   `json:"uncompressed"`
	Ratio     float64 `json:"ratio,omitempty"` // compressed by uncompressed size, of the requests that were compressed tentatively
	Micros    float64 `json:"compress_us,omitempty"`
}

// compressed copies the client's statistics about compressing the requests.
func (r *benchReport) compressed(stats []anser.CompressionStats) {
	for _, st := range stats {
		if st.Method != r.Method {
			continue
		}
		z := &benchCompression{Algorithm: st.Algorithm, Packed: st.Packed, Plain: st.Plain}
		if st.Before > 0 && r.RequestBytes > 0 {
			z.Ratio = round(float64(st.After) / float64(st.Before))
			z.Micros = micros(st.Time) / (float64(st.Before) / float64(r.RequestBytes))
			z.Micros = round(z.Micros)
		}
		r.Compression = z
	}
}

// meter measures processor time between begin and end.
type meter struct {
	servers                            []int
	client0, client1, server0, server1 time.Duration
	clientErr, serverErr               error
	began                              bool
}

func (m *meter) begin() {
	m.began = true
	m.client0, m.clientErr = cputime.Self()
	m.server0, m.serverErr = cputime.Of(m.servers)
}

func (m *meter) end() {
	if !m.began {
		return
	}
	if m.clientErr == nil {
		m.client1, m.clientErr = cputime.Self()
	}
	if m.serverErr == nil {
		m.server1, m.serverErr = cputime.Of(m.servers)
	}
}

// perCall returns microseconds, or nil if they are unknown.
func (m *meter) perCall(calls int64, used time.Duration, err error) *float64 {
	if err != nil || !m.began || calls == 0 {
		return nil
	}
	us := round(float64(used.Nanoseconds()) / 1e3 / float64(calls))
	return &us
}

func round(f float64) float64 { return float64(int64(f*100+0.5)) / 100 }

func micros(d time.Duration) float64 { return round(float64(d.Nanoseconds()) / 1e3) }

func newBenchReport(f *benchFlags, target, method string, bytes int, r *load.Result, cpu *meter) benchReport {
	all := r.Calls + r.Failed
	return benchReport{
		Target: target, Method: method, Callers: f.callers, Conns: f.conns, Rate: f.rate, RequestBytes: bytes,
		Seconds: round(r.Elapsed.Seconds()), Calls: r.Calls, CallsPerS: round(r.Rate()),
		Errors: r.Failed, ErrorCodes: r.Errors, Missed: r.Missed,
		P50: micros(r.At(.5)), P90: micros(r.At(.9)), P99: micros(r.At(.99)), P999: micros(r.At(.999)), Max: micros(r.Max()),
		ClientCPU: cpu.perCall(all, cpu.client1-cpu.client0, cpu.clientErr),
		ServerCPU: cpu.perCall(all, cpu.server1-cpu.server0, cpu.serverErr),
	}
}

// loop says when calls are made.
func (f *benchFlags) loop() string {
	if f.rate > 0 {
		return fmt.Sprintf("%s calls/s due", table.Rate(f.rate))
	}
	return "closed loop"
}

func showBench(s streams, f *benchFlags, r benchReport) {
	out := screen.New(s.out)
	out.Print(
		fmt.Sprintf("%s at %s", r.Method, r.Target),
		fmt.Sprintf("%s, %s, requests of %s bytes, %s, %.1f s", plural(r.Callers, "caller"),
			plural(r.Conns, "connection"), table.Count(int64(r.RequestBytes)), f.loop(), r.Seconds),
		"")
	t := table.Table{Columns: []table.Column{
		{Title: "CALLS", Right: true},
		{Title: "CALLS/S", Right: true},
		{Title: "ERRORS", Right: true},
		{Title: "P50", Right: true},
		{Title: "P90", Right: true},
		{Title: "P99", Right: true},
		{Title: "P99.9", Right: true},
		{Title: "MAX", Right: true},
	}}
	us := microsText
	t.Add(table.Count(r.Calls), table.Rate(r.CallsPerS), table.Count(r.Errors),
		us(r.P50), us(r.P90), us(r.P99), us(r.P999), us(r.Max))
	width, _ := out.Size()
	lines := append(t.Lines(width), "")
	known := func(cpu *float64) string {
		if cpu == nil {
			return "unknown"
		}
		return us(*cpu)
	}
	lines = append(lines, fmt.Sprintf("CPU a call: client %s, server %s", known(r.ClientCPU), known(r.ServerCPU)))
	if z := r.Compression; z != nil {
		line := fmt.Sprintf("%s: %s requests compressed, %s not", z.Algorithm, table.Count(z.Packed), table.Count(z.Plain))
		if z.Ratio > 0 {
			line += fmt.Sprintf("; to %.0f %% of their size in %s each", 100*z.Ratio, us(z.Micros))
		}
		lines = append(lines, line)
	}
	for _, code := range slices.Sorted(maps.Keys(r.ErrorCodes)) {
		lines = append(lines, bad.Render(fmt.Sprintf("failed: %s × %s", table.Count(r.ErrorCodes[code]), code)))
	}
	if r.Missed > 0 {
		missed := table.Count(r.Missed) + " calls were due and never made: the server cannot keep up with the rate"
		lines = append(lines, bad.Render(missed))
	} else if f.rate > 0 && r.CallsPerS < 0.95*f.rate && r.Errors == 0 {
		lines = append(lines, fair.Render("the rate was not reached: the latencies hold the time that calls waited for a caller"))
	}
	out.Print(lines...)
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%s %s", table.Count(int64(n)), what)
}
