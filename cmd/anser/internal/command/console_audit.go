package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
)

func newConsoleAudit(s streams) *cobra.Command {
	var head string
	var asJSON bool
	c := &cobra.Command{
		Use:   "audit FILE",
		Short: "Check that no entry of an audit log of the console was changed",
		Long: "Check that no entry of an audit log of the console was changed, removed or put in between, and print the hash of the\n" +
			"last one. Keep that hash in another place: with --head, entries that were removed from the end are found, too, and\n" +
			"so is a log whose hashes were all computed anew.\n\nExit codes: 0 the log is whole; 1 it is not; 2 wrong use.",
		Example: strings.Trim(`
  anser console audit audit.jsonl
  anser console audit audit.jsonl --head 5e1f…`, "\n"),
		Args: takes(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			sum, err := audit.Verify(args[0], head)
			if err != nil {
				return fmt.Errorf("the audit log %s: %w", args[0], err)
			}
			if asJSON {
				return printJSON(s.out, sum)
			}
			screen.New(s.out).Print(fmt.Sprintf("%d entries, and none was changed. The hash of the last one is %s.", sum.Entries, sum.Hash))
			return nil
		},
	}
	c.Flags().StringVar(&head, "head", "", "hash that an entry of the log must have")
	jsonFlag(c, &asJSON)
	return c
}
