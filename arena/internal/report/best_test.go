package report_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/arena/result"
)

// bestDocument is of a run in which each peer chose its connections; "all" measured every one of
// them with 100 callers. Its figures are made up.
func bestDocument(all bool) *result.Document {
	began := time.Date(2025, 11, 21, 9, 30, 0, 0, time.UTC)
	doc := &result.Document{
		Schema: result.Schema, Command: []string{"go", "run", "./arena", "run", "--callers=100,1000"}, Commit: "0123456789ab",
		Began: began, Ended: began.Add(time.Hour), Machine: result.Machine{CPU: "none", Cores: 2}, NotRun: []result.NotRun{},
	}
	best := map[string]int{"anser": 2, "kitex-longpool": 0, "drpc": 16}
	for _, name := range []string{"anser", "kitex-longpool", "drpc"} {
		for i, conns := range []int{2, 16, 0} {
			for _, callers := range []int{100, 1000} {
				shape := result.Shape{Callers: callers, Conns: conns, Payload: 581, Servers: 1, Clients: 1, Hosts: 1, Seconds: 5}
				rate := 10_000 * float64(i+1)
				if conns == best[name] {
					rate = 60_000 + 1000*float64(len(name))
				}
				trial := result.Trial{Peer: name, Workload: "say", Shape: shape, Valid: !(name == "drpc" && conns == 0)}
				trial.CallsPerSecond = rate - 1
				if conns != best[name] && !(all && callers == 100) {
					doc.Trials = append(doc.Trials, trial)
					continue
				}
				doc.Rows = append(doc.Rows, bestRow(name, shape, rate, conns == best[name]))
				if conns == best[name] {
					doc.Trials = append(doc.Trials, trial)
					shape.Share, shape.Rate = 0.6, 0.6*rate
					doc.Rows = append(doc.Rows, bestRow(name, shape, shape.Rate, true))
				}
			}
		}
	}
	return doc
}

func bestRow(name string, shape result.Shape, rate float64, best bool) result.Row {
	row := result.Row{
		Peer: name, Framework: name, Version: "v1", Language: "go", Settings: "defaults", Workload: "say", Shape: shape,
		Valid: true, Best: best,
	}
	row.Calls, row.SuccessRate, row.CallsPerSecond, row.CPUUS = int64(5*rate), 1, rate, 1e6/rate
	row.P50US, row.P99US, row.P999US = 100, 1e7/rate, 2e7/rate
	row.CallsPerSecondRange = [2]float64{rate, rate}
	row.Rounds = []result.Round{{Figures: row.Figures}}
	return row
}

// Peers are compared each with its best connections, which are named, and at a share of their own
// peaks.
func TestBestIsComparedAndNamed(t *testing.T) {
	folder := written(t, bestDocument(false))
	text := read(t, folder, "results.md")
	for _, want := range []string{
		"### say: 1,000 callers, each with its best connections\n",
		"### say: 1,000 callers, each with its best connections, 60 % of its own peak offered\n",
		"| kitex-longpool | Go       |        each |  74,000 |",
		"| drpc           | Go       |          16 |  64,000 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
	// A group of those whose best is the same by chance would look as if the others had failed.
	if strings.Contains(text, "callers, 2 connections") {
		t.Errorf("the tables have a part of the peers:\n%s", text)
	}
	text = read(t, written(t, bestDocument(true)), "results.md")
	for _, want := range []string{
		"### say: 100 callers, 2 connections\n", "### say: 100 callers, 16 connections\n",
		"### say: 100 callers, a connection for each caller\n", "### say: 100 callers, each with its best connections\n",
	} {
		if _, table, ok := strings.Cut(text, want); !ok {
			t.Errorf("the tables of all shapes lack %q", want)
		} else if table, _, _ = strings.Cut(table, "###"); strings.Count(table, "\n|") != 5 {
			t.Errorf("%q lacks peers:\n%s", want, table)
		}
	}
	chart := read(t, folder, "throughput.svg")
	for _, want := range []string{"1,000 callers, each with its best connections", "The connections", ">Go, each<", ">Go, 16<", ">Go, 2<"} {
		if !strings.Contains(chart, want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
}

// In the browser the first look is at the best, and a row's details say what else was tried.
func bestInBrowser(t *testing.T, b *chromium, page string) {
	for _, colours := range []string{"light", "dark"} {
		p := b.open(t, page, 1300, 900, colours)
		p.fine()
		if about := p.text(`document.getElementById("charts-about").textContent`); !strings.HasPrefix(about, "say: 1,000 callers, each with its best connections. Behind") {
			t.Errorf("the first look is at %s", about)
		}
		if tags := p.strings(`Array.from(document.querySelectorAll("#chart-cpu g.row text.m:not(.n)"), (node) => node.textContent)`); !slices.Equal(tags, []string{"Go, each", "Go, 2", "Go, 16"}) {
			t.Errorf("the chart names %q", tags)
		}
		p.click(`#table tr[data-peer="drpc"] .open-row`)
		want := "2 connections: 9,999 calls/s; 16 connections: 63,999 calls/s; a connection for each caller: invalid"
		if details := p.text(`document.querySelector("#table tr.details").textContent`); !strings.Contains(details, want) {
			t.Errorf("the details say %s", details)
		}
		p.click(`#table [data-sort="conns"]`)
		if peers := p.strings(tablePeers); !slices.Equal(peers, []string{"drpc", "anser", "kitex-longpool"}) {
			t.Errorf("sorted by connections: %v", peers)
		}
		p.fine()
	}
}
