package command

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/arena/internal/document"
	"github.com/anser-rpc/anser/arena/internal/report"
)

func newReport(s streams) *cobra.Command {
	var page, charts, tables, readme string
	c := &cobra.Command{
		Use:   "report RESULTS.json",
		Short: "Show a run as a page, charts or tables",
		Long: strings.TrimSpace(`
Show a run as a page for a browser, as charts for a README, or as Markdown tables. They load no
external resources.

--readme writes the chart and a table of the first ten frameworks into a file, between the lines
<!-- arena: begin --> and <!-- arena: end -->, with the commit, the date and the connections of the
run. The chart is the file written by --svg, so both show the same run.`),
		Example: "  arena report results.json --html report.html\n  arena report results.json --svg charts --md tables.md\n" +
			"  arena report results.json --svg docs/arena/images --readme README.md",
		Args: takes(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if readme != "" && charts == "" {
				return usagef("--readme %s: set the folder of its chart with --svg FOLDER", readme)
			}
			if page == "" && charts == "" && tables == "" {
				return usagef("set at least one output: --html FILE, --svg FOLDER or --md FILE")
			}
			doc, err := document.Read(args[0])
			if err != nil {
				return err
			}
			if err := report.Write(doc, page, charts, tables); err != nil {
				return err
			}
			if readme != "" {
				if err := report.Readme(doc, readme, charts); err != nil {
					return err
				}
			}
			for _, written := range []struct{ path, what string }{
				{page, "the page"}, {charts, "the charts"}, {tables, "the tables"}, {readme, "the readme"},
			} {
				if written.path != "" {
					fmt.Fprintf(s.out, "%s: %s\n", written.what, filepath.Clean(written.path))
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&page, "html", "", "write the page to this file")
	c.Flags().StringVar(&charts, "svg", "", "write the charts into this folder")
	c.Flags().StringVar(&tables, "md", "", "write the tables to this file")
	c.Flags().StringVar(&readme, "readme", "", "write chart and table into this file, between the two marker lines")
	return c
}
