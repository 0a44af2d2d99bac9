package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/arena/internal/compare"
	"github.com/anser-rpc/anser/arena/internal/document"
	"github.com/anser-rpc/anser/arena/internal/suite"
	"github.com/anser-rpc/anser/arena/internal/table"
)

func newCompare(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "compare A.json B.json",
		Short: "Show the changes between two runs",
		Long: `Show the changes between two runs: the ratio of the medians, B to A, for each peer, workload and
shape in both. If the rounds of the two runs overlap, the difference is within the noise.`,
		Example: "  arena compare before.json after.json\n  arena compare before.json after.json --json",
		Args:    takes(2),
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := document.Read(args[0])
			if err != nil {
				return err
			}
			b, err := document.Read(args[1])
			if err != nil {
				return err
			}
			report := compare.Documents(a, b)
			if asJSON {
				return printJSON(s.out, report)
			}
			if a.Machine.CPU != b.Machine.CPU || a.Machine.Cores != b.Machine.Cores {
				fmt.Fprintf(s.out, "The machines differ: %s with %d cores, and %s with %d.\n",
					a.Machine.CPU, a.Machine.Cores, b.Machine.CPU, b.Machine.Cores)
			}
			return showCompare(s, report)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func showCompare(s streams, report *compare.Report) error {
	last := ""
	var t *table.Table
	flush := func() {
		if t != nil {
			t.Write(s.out)
			fmt.Fprintln(s.out)
		}
	}
	for i := range report.Rows {
		row := &report.Rows[i]
		if title := suite.Describe(row.Workload, row.Shape); title != last {
			flush()
			last = title
			fmt.Fprintln(s.out, title)
			t = table.New("PEER", ">CALLS/S", "", ">CPU", "", ">P50", "", ">P99", "")
		}
		cells := []string{row.Peer}
		if row.Invalid != "" {
			cells = append(cells, "", row.Invalid)
		}
		for _, f := range row.Figures {
			cells = append(cells, fmt.Sprintf("× %.2f", f.Ratio), verdict(&f))
		}
		t.Add(cells...)
	}
	flush()
	for _, only := range []struct {
		where string
		rows  []compare.Absent
	}{{"A", report.OnlyA}, {"B", report.OnlyB}} {
		for _, r := range only.rows {
			fmt.Fprintf(s.out, "only in %s: %s: %s\n", only.where, r.Peer, suite.Describe(r.Workload, r.Shape))
		}
	}
	return nil
}

func verdict(f *compare.Figure) string {
	switch {
	case f.Noise:
		return "within noise"
	case f.Better:
		return "better"
	}
	return "WORSE"
}
