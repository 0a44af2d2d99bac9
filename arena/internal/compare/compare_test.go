package compare_test

import (
	"testing"

	"github.com/anser-rpc/anser/arena/internal/compare"
	"github.com/anser-rpc/anser/arena/result"
)

func row(peer string, callers int, rate, cpu float64, spread float64) result.Row {
	r := result.Row{Peer: peer, Workload: "say", Shape: result.Shape{Callers: callers, Seconds: 1}, Valid: true}
	around := func(f float64) [2]float64 { return [2]float64{f * (1 - spread), f * (1 + spread)} }
	r.CallsPerSecond, r.CPUUS, r.P50US, r.P99US = rate, cpu, 10, 0
	r.CallsPerSecondRange, r.CPURange, r.P50Range = around(rate), around(cpu), around(10)
	return r
}

func TestDocuments(t *testing.T) {
	published := row("k", 1, 9, 9, 0)
	published.Published = "somewhere"
	a := &result.Document{Rows: []result.Row{row("x", 1, 100, 10, 0.1), row("x", 5, 100, 10, 0.1), row("gone", 1, 1, 1, 0), published}}
	b := &result.Document{Rows: []result.Row{row("new", 1, 1, 1, 0), row("x", 5, 150, 12, 0.05), row("x", 1, 104, 30, 0.1)}}
	b.Rows[1].Shape.Seconds = 9 // measured for longer, and still the same thing
	b.Rows[1].Shape.Window = 1
	report := compare.Documents(a, b)
	if len(report.Rows) != 2 || len(report.OnlyA) != 1 || len(report.OnlyB) != 1 || report.OnlyA[0].Peer != "gone" || report.OnlyB[0].Peer != "new" {
		t.Fatalf("%+v", report)
	}
	figures := func(i int) map[string]compare.Figure {
		all := make(map[string]compare.Figure)
		for _, f := range report.Rows[i].Figures {
			all[f.Name] = f
		}
		return all
	}
	one, five := figures(0), figures(1)
	if f := one["calls_per_s"]; f.Ratio != 1.04 || !f.Noise || f.Better {
		t.Errorf("a little more: %+v", f)
	}
	if f := one["cpu_us_per_call"]; f.Ratio != 3 || f.Noise || f.Better {
		t.Errorf("three times the CPU: %+v", f)
	}
	if f := five["calls_per_s"]; f.Ratio != 1.5 || f.Noise || !f.Better || f.A != 100 || f.B != 150 {
		t.Errorf("half as much again: %+v", f)
	}
	if f := five["p99_us"]; f.Ratio != 0 || !f.Noise { // nothing was measured
		t.Errorf("of nothing: %+v", f)
	}
}

func TestInvalid(t *testing.T) {
	for _, c := range []struct {
		a, b bool
		want string
	}{{true, true, ""}, {true, false, "was valid, and is invalid now"}, {false, true, "was invalid, and is valid now"}, {false, false, "invalid in both"}} {
		x, y := row("x", 1, 1, 1, 0), row("x", 1, 1, 1, 0)
		x.Valid, y.Valid = c.a, c.b
		report := compare.Documents(&result.Document{Rows: []result.Row{x}}, &result.Document{Rows: []result.Row{y}})
		if got := report.Rows[0]; got.Invalid != c.want || (len(got.Figures) > 0) != (c.want == "") {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
