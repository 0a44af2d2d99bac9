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
	var page, charts, tables string
	c := &cobra.Command{
		Use:   "report RESULTS.json",
		Short: "Show a run as a page, charts or tables",
		Long: strings.TrimSpace(`
Show a run as a page to look at in a browser, as charts for a README, or as tables in Markdown. None
of them loads anything from elsewhere.`),
		Example: "  arena report results.json --html report.html\n  arena report results.json --svg charts --md tables.md",
		Args:    takes(1),
		RunE: func(_ *cobra.Command, args []string) error {
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
			for _, written := range []struct{ path, what string }{
				{page, "the page"}, {charts, "the charts"}, {tables, "the tables"},
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
	return c
}
