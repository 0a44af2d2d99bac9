package report

import (
	"fmt"
	"math"
	"testing"

	"github.com/anser-rpc/anser/arena/result"
)

// rowsAt makes valid rows of n peers under a shape.
func rowsAt(workload string, callers, conns, n int) []result.Row {
	var rows []result.Row
	for i := range n {
		rows = append(rows, result.Row{
			Peer: fmt.Sprintf("peer-%d", i), Language: "go", Workload: workload, Valid: true,
			Shape: result.Shape{Callers: callers, Conns: conns, Payload: 581, Servers: 1, Clients: 1, Hosts: 1},
		})
	}
	return rows
}

func TestHeadline(t *testing.T) {
	for name, c := range map[string]struct {
		rows []result.Row
		want string
	}{
		"nothing":                    {nil, ""},
		"1,000 callers before more":  {append(append(rowsAt("say", 1000, 2, 4), rowsAt("say", 5000, 2, 5)...), rowsAt("say", 100, 2, 5)...), "say c1000-n2"},
		"a load that few could take": {append(rowsAt("say", 1000, 2, 2), rowsAt("say", 500, 2, 9)...), "say c500-n2"},
		"shared before each":         {append(rowsAt("say", 100, 0, 9), rowsAt("say", 100, 2, 5)...), "say c100-n2"},
		"say before add":             {append(rowsAt("add", 1000, 2, 9), rowsAt("say", 1, 2, 5)...), "say c1-n2"},
		"only add":                   {append(rowsAt("add", 1, 1, 2), rowsAt("add", 4, 0, 3)...), "add c4-each"},
	} {
		got := ""
		if g := compare(&result.Document{Rows: c.rows}).headline(); g != nil {
			got = g.workload + " " + g.key
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Durations part shapes only where the document has several of them.
func TestSecondsPartShapes(t *testing.T) {
	rows := append(rowsAt("say", 100, 2, 1), rowsAt("say", 100, 2, 1)...)
	rows[0].Shape.Seconds, rows[1].Shape.Seconds = 5, 5
	if n := len(compare(&result.Document{Rows: rows}).groups); n != 1 {
		t.Errorf("%d groups of one duration", n)
	}
	rows[1].Shape.Seconds = 1
	c := compare(&result.Document{Rows: rows})
	if n := len(c.groups); n != 2 || c.groups[0].label == c.groups[1].label {
		t.Errorf("%d groups of two durations", n)
	}
}

func TestStatusOfRows(t *testing.T) {
	for _, c := range []struct {
		row    result.Row
		status status
		reason string
	}{
		{result.Row{Valid: true}, measured, ""},
		{result.Row{Valid: true, Marks: []string{"no deadline", "not a framework: no errors"}}, reference, ""},
		{result.Row{Published: "somebody"}, published, ""},
		{result.Row{Figures: result.Figures{Wrong: 1}}, invalid, "1 wrong reply"},
		{result.Row{Rounds: []result.Round{{Figures: result.Figures{Wrong: 1200}}}}, invalid, "1,200 wrong replies"},
		{result.Row{Figures: result.Figures{Errors: 5}, Rounds: []result.Round{{}, {FirstError: "refused"}}}, invalid, "errors in every call: refused"},
		{result.Row{Rounds: []result.Round{{FirstError: "the client hung"}}}, invalid, "the client hung"},
		{result.Row{Figures: result.Figures{Errors: 5}}, invalid, "errors in every call"},
		{result.Row{Figures: result.Figures{Calls: 1995, Errors: 5}, Rounds: []result.Round{{FirstError: "full"}}}, invalid, "5 of 2,000 calls failed: full"},
		{result.Row{}, invalid, "it was not measured"},
	} {
		if status, reason := statusOf(&c.row); status != c.status || reason != c.reason {
			t.Errorf("%+v is %s, %q: want %s, %q", c.row, status, reason, c.status, c.reason)
		}
	}
}

// A range that the document has is taken; where it has none, the rounds give it.
func TestSpans(t *testing.T) {
	round := func(rate, p999, client, server float64) result.Round {
		return result.Round{Figures: result.Figures{CallsPerSecond: rate, P999US: p999, ClientMiB: client, ServerMiB: server}}
	}
	r := result.Row{Rounds: []result.Round{round(10, 7, 5, 5), round(12, 0, 6, 7), round(11, 9, 0, 4)}}
	for key, want := range map[string][2]float64{"throughput": {10, 12}, "p99.9": {7, 9}, "memory": {10, 13}} {
		least, most, ok := figureOf(key).span(&r)
		if !ok || least != want[0] || most != want[1] {
			t.Errorf("%s spans %v to %v (%v), want %v", key, least, most, ok, want)
		}
	}
	r.CallsPerSecondRange = [2]float64{8, 13}
	if least, most, _ := figureOf("throughput").span(&r); least != 8 || most != 13 {
		t.Errorf("the range of the document is not taken: %v to %v", least, most)
	}
	r.Rounds = r.Rounds[:1]
	if _, _, ok := figureOf("p99.9").span(&r); ok {
		t.Error("one round has a spread")
	}
	if v := figureOf("p99").value(&r); !math.IsNaN(v) {
		t.Errorf("a figure that was not read is %v", v)
	}
}
