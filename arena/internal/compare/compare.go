// Package compare says what changed from one document to another.
package compare

import (
	"github.com/anser-rpc/anser/arena/internal/stat"
	"github.com/anser-rpc/anser/arena/result"
)

// Report is what changed.
type Report struct {
	Rows  []Row    `json:"rows"`
	OnlyA []Absent `json:"only_a,omitempty"`
	OnlyB []Absent `json:"only_b,omitempty"`
}

// Absent is a row that one document lacks.
type Absent struct {
	Peer     string       `json:"peer"`
	Workload string       `json:"workload"`
	Shape    result.Shape `json:"shape"`
}

// Row is a peer under one workload and shape that both documents have.
type Row struct {
	Peer     string       `json:"peer"`
	Workload string       `json:"workload"`
	Shape    result.Shape `json:"shape"`
	// Invalid says that the row is valid in one of them only, or in none: its figures mean
	// nothing.
	Invalid string   `json:"invalid,omitempty"`
	Figures []Figure `json:"figures,omitempty"`
}

// Figure is one figure of a row in both documents.
type Figure struct {
	Name   string     `json:"name"`
	A      float64    `json:"a"`
	B      float64    `json:"b"`
	RangeA [2]float64 `json:"a_range"`
	RangeB [2]float64 `json:"b_range"`
	Ratio  float64    `json:"ratio"` // of the medians, B to A
	// Noise says that the rounds of both overlap: the difference may be chance.
	Noise  bool `json:"within_noise"`
	Better bool `json:"better"` // B is, where it is not noise
}

// figures are the compared figures.
var figures = []struct {
	name   string
	more   bool // is better
	median func(*result.Row) float64
	spread func(*result.Row) [2]float64
}{
	{"calls_per_s", true, func(r *result.Row) float64 { return r.CallsPerSecond }, func(r *result.Row) [2]float64 { return r.CallsPerSecondRange }},
	{"cpu_us_per_call", false, func(r *result.Row) float64 { return r.CPUUS }, func(r *result.Row) [2]float64 { return r.CPURange }},
	{"p50_us", false, func(r *result.Row) float64 { return r.P50US }, func(r *result.Row) [2]float64 { return r.P50Range }},
	{"p99_us", false, func(r *result.Row) float64 { return r.P99US }, func(r *result.Row) [2]float64 { return r.P99Range }},
}

// Documents compares b with a. Published rows are left out: they do not change.
func Documents(a, b *result.Document) *Report {
	report := new(Report)
	matched := make(map[*result.Row]bool)
	for i := range a.Rows {
		old := &a.Rows[i]
		if old.Published != "" {
			continue
		}
		now := find(b, old)
		if now == nil {
			report.OnlyA = append(report.OnlyA, absent(old))
			continue
		}
		matched[now] = true
		report.Rows = append(report.Rows, rows(old, now))
	}
	for i := range b.Rows {
		if row := &b.Rows[i]; row.Published == "" && !matched[row] {
			report.OnlyB = append(report.OnlyB, absent(row))
		}
	}
	return report
}

func absent(r *result.Row) Absent { return Absent{Peer: r.Peer, Workload: r.Workload, Shape: r.Shape} }

// key is what makes two rows the same measurement. How long it took does not: a longer one of the
// same thing can be compared. An offered rate that is a share of the peer's own peak differs from
// run to run.
func key(r *result.Row) Absent {
	k := absent(r)
	k.Shape.Seconds = 0
	k.Shape.Window = max(k.Shape.Window, 1)
	if k.Shape.Share > 0 {
		k.Shape.Rate = 0
	}
	return k
}

func find(doc *result.Document, like *result.Row) *result.Row {
	for i := range doc.Rows {
		if row := &doc.Rows[i]; row.Published == "" && key(row) == key(like) {
			return row
		}
	}
	return nil
}

func rows(a, b *result.Row) Row {
	row := Row{Peer: a.Peer, Workload: a.Workload, Shape: b.Shape}
	switch {
	case !a.Valid && !b.Valid:
		row.Invalid = "invalid in both"
	case !a.Valid:
		row.Invalid = "was invalid, and is valid now"
	case !b.Valid:
		row.Invalid = "was valid, and is invalid now"
	}
	if row.Invalid != "" {
		return row
	}
	for _, f := range figures {
		out := Figure{Name: f.name, A: f.median(a), B: f.median(b), RangeA: f.spread(a), RangeB: f.spread(b)}
		if out.A > 0 {
			out.Ratio = out.B / out.A
		}
		out.Noise = stat.Overlap(out.RangeA, out.RangeB)
		out.Better = !out.Noise && (out.B > out.A) == f.more
		row.Figures = append(row.Figures, out)
	}
	return row
}
