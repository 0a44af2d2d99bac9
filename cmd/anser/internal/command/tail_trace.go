package command

import (
	"encoding/hex"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/top"
)

// printTrace prints the calls of one trace that the processes remember.
func (f *tailFlags) printTrace(c *cobra.Command, s streams, args []string) error {
	for _, name := range []string{"method", "side", "failed", "slower", "sampled", "rate", "count", "for"} {
		if c.Flags().Changed(name) {
			return usagef("--trace prints all calls of a trace: leave --%s out", name)
		}
	}
	id := strings.ToLower(f.trace)
	if n, err := hex.DecodeString(id); err != nil || len(n) != 16 {
		return usagef("--trace %q: want the 32 digits of hexadecimal that a failed or slow call shows", f.trace)
	}
	find, end, err := f.finder(args)
	if err != nil {
		return err
	}
	defer end()
	sources, err := find(c.Context())
	if err != nil {
		return err
	}
	reader, closeIdle := f.reader()
	defer closeIdle()
	t, err := top.ReadTrace(c.Context(), reader, sources, f.timeout, id)
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(s.out, t)
	}
	out := screen.New(s.out)
	width := 0
	if out.Terminal() {
		width, _ = out.Size()
	}
	out.Print(t.Lines(width)...)
	return nil
}
