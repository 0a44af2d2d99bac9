package command

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/arena/internal/suite"
	"github.com/anser-rpc/anser/arena/internal/table"
	"github.com/anser-rpc/anser/arena/result"
)

// showRun prints a table for each workload and shape, the peer with the least CPU time a call
// first: calls a second depend on what else the machine does, and CPU time hardly.
func showRun(s streams, doc *result.Document) error {
	var titles []string
	groups := make(map[string][]*result.Row)
	enter := func(title string, row *result.Row) {
		if groups[title] == nil {
			titles = append(titles, title)
		}
		groups[title] = append(groups[title], row)
	}
	title := func(row *result.Row) string { return suite.Describe(row.Workload, row.Shape) }
	own := suite.Groups(doc.Rows, title)
	for i := range doc.Rows {
		row := &doc.Rows[i]
		if row.Best {
			enter(suite.DescribeBest(row.Workload, row.Shape), row)
		}
		if own(row) {
			enter(title(row), row)
		}
	}
	for _, title := range titles {
		fmt.Fprintf(s.out, "\n%s\n", title)
		if err := runTable(groups[title]).Write(s.out); err != nil {
			return err
		}
	}
	showMarks(s, doc)
	for _, n := range doc.NotRun {
		fmt.Fprintf(s.out, "not run: %s: %s\n", n.Peer, n.Reason)
	}
	return nil
}

func runTable(rows []*result.Row) *table.Table {
	slices.SortStableFunc(rows, func(a, b *result.Row) int {
		return cmp.Or(
			-cmp.Compare(rank(a), rank(b)),
			cmp.Compare(a.CPUUS, b.CPUUS),
		)
	})
	t := table.New("PEER", "CONNECTIONS", ">CALLS/S", "LEAST – MOST", ">CPU A CALL", ">CLIENT", ">SERVER", ">P50", ">P99", ">MiB", ">ERRORS", "NOTES")
	for _, r := range rows {
		if r.Published != "" {
			t.Add(r.Peer, conns(r), table.Count(r.CallsPerSecond), "", "", "", "", "", "", "", "", "published: "+r.Settings)
			continue
		}
		t.Add(r.Peer, conns(r), table.Count(r.CallsPerSecond),
			table.Count(r.CallsPerSecondRange[0])+" – "+table.Count(r.CallsPerSecondRange[1]),
			table.Micros(r.CPUUS), table.Micros(r.ClientCPUUS), table.Micros(r.ServerCPUUS),
			table.Micros(r.P50US), table.Micros(r.P99US), table.Digits(r.ClientMiB+r.ServerMiB), table.Count(float64(r.Errors)), notes(r))
	}
	return t
}

// conns names the connections of a row in a word.
func conns(r *result.Row) string {
	switch {
	case r.Shape.Fresh:
		return "fresh"
	case r.Shape.Conns == 0:
		return "each"
	}
	return strconv.Itoa(r.Shape.Conns)
}

// rank puts what can be compared first.
func rank(r *result.Row) int {
	switch {
	case r.Published != "":
		return 0
	case !r.Valid:
		return 1
	}
	return 2
}

func notes(r *result.Row) string {
	var words []string
	if !r.Valid {
		words = append(words, "INVALID: "+reason(r))
	}
	disturbed := 0
	for i := range r.Rounds {
		if r.Rounds[i].Disturbed {
			disturbed++
		}
	}
	if disturbed > 0 {
		words = append(words, fmt.Sprintf("disturbed in %d of %d rounds", disturbed, len(r.Rounds)))
	}
	if len(r.Marks) > 0 {
		words = append(words, "see its marks")
	}
	return strings.Join(words, "; ")
}

func reason(r *result.Row) string {
	if r.Wrong > 0 {
		return table.Count(float64(r.Wrong)) + " wrong replies"
	}
	for i := range r.Rounds {
		if r.Rounds[i].FirstError != "" {
			return r.Rounds[i].FirstError
		}
	}
	return "no call ended inside the measurement"
}

// showMarks prints what a reader must know of the peers, once for each.
func showMarks(s streams, doc *result.Document) {
	seen := make(map[string]bool)
	first := true
	for i := range doc.Rows {
		for _, mark := range doc.Rows[i].Marks {
			line := doc.Rows[i].Peer + ": " + mark
			if seen[line] {
				continue
			}
			seen[line] = true
			if first {
				fmt.Fprintln(s.out)
				first = false
			}
			fmt.Fprintf(s.out, "mark: %s\n", line)
		}
	}
}
