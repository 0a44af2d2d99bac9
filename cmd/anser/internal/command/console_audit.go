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
			"so is a log whose hashes were all computed anew.\n\nExit codes: 0 the entries are unchanged; 1 they are not; 2 wrong use.",
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
			out := screen.New(s.out)
			if sum.Entries > 0 {
				out.Print(fmt.Sprintf("%d entries, and none was changed. The hash of the last one is %s.", sum.Entries, sum.Hash))
			} else {
				out.Print("The log has no entries.")
			}
			if head == "" {
				out.Print("Entries may have been removed from the end, or all hashes computed anew: only a hash that was\n" +
					"kept in another place can show that. Pass it with --head.")
			} else {
				out.Print(fmt.Sprintf("The hash that was given is the one of entry %d: nothing up to there was changed or removed.", sum.Vouched))
			}
			return nil
		},
	}
	c.Flags().StringVar(&head, "head", "", "hash that an entry of the log must have")
	jsonFlag(c, &asJSON)
	return c
}
