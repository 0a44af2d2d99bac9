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
Show a run as a page to look at in a browser, as charts for a README, or as tables in Markdown. None
of them loads anything from elsewhere.

With --readme the picture and a table of the first ten frameworks are written into a file, between the
lines <!-- arena: begin --> and <!-- arena: end -->, with the commit, the day and the connections of the
run. The picture is the one that --svg writes, so that both come from one run.`),
		Example: "  arena report results.json --html report.html\n  arena report results.json --svg charts --md tables.md\n" +
			"  arena report results.json --svg docs/arena/images --readme README.md",
		Args: takes(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if readme != "" && charts == "" {
				return usagef("--readme %s: say with --svg FOLDER where its picture goes", readme)
			}
			if page == "" && charts == "" && tables == "" {
				return usagef("say what to write: --html FILE, --svg FOLDER or --md FILE")
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
	c.Flags().StringVar(&page, "html", "", "write the page here")
	c.Flags().StringVar(&charts, "svg", "", "write the charts into this folder")
	c.Flags().StringVar(&tables, "md", "", "write the tables here")
	c.Flags().StringVar(&readme, "readme", "", "write picture and table into this file, between its two lines for them")
	return c
}
