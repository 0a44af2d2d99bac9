package command

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/top"
)

// topFlags are the flags of "anser top".
type topFlags struct {
	watchedFlags
	every     time.Duration
	once      bool
	json      bool
	processes bool
	show      top.Show
}

func newTop(s streams) *cobra.Command {
	var f topFlags
	c := &cobra.Command{
		Use:   "top [SERVICE|ADDRESS...]",
		Short: "Show live what services, instances and methods do",
		Long: "Show live what the processes of a system do: rates, failures, percentiles, queues, CPU and memory, by method and\n" +
			"by instance. On a terminal it is a screen: tab changes between methods and instances, enter opens one of them, and then one of its slow\n" +
			"or failed calls with its parts in time, s sorts, / filters, space pauses, q quits. Elsewhere tables follow each other.\n\n" + watchedHelp,
		Example: strings.Trim(`
  anser top
  anser top arith
  anser top 127.0.0.1:8971 127.0.0.1:8972
  anser top --once --json | jq '.methods[] | {name, rate, p99}'`, "\n"),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(top.Orders[:], f.show.Order) {
				return usagef("--sort %q: want one of %s", f.show.Order, strings.Join(top.Orders[:], ", "))
			}
			if f.every < 100*time.Millisecond {
				return usagef("--every %v: want at least 100ms", f.every)
			}
			f.show.Processes = f.processes
			find, end, err := f.finder(args)
			if err != nil {
				return err
			}
			defer end()
			reader, closeIdle := f.reader()
			defer closeIdle()
			w := &top.Watcher{Find: find, Reader: reader, Timeout: f.timeout}
			in, ok := s.in.(*os.File)
			if screen.New(s.out).Terminal() && ok && term.IsTerminal(in.Fd()) && !f.once && !f.json {
				return top.Run(c.Context(), w, f.every, f.show, in, s.out)
			}
			return topLines(c.Context(), s, &f, w)
		},
	}
	f.add(c)
	fs := c.Flags()
	fs.DurationVar(&f.every, "every", 2*time.Second, "time between two looks")
	fs.BoolVar(&f.once, "once", false, "measure for the time of --every, print the result, and end")
	fs.BoolVar(&f.processes, "instances", false, "begin with instances instead of methods")
	fs.StringVar(&f.show.Order, "sort", top.Orders[0], "order of the rows: "+strings.Join(top.Orders[:], ", "))
	fs.StringVar(&f.show.Filter, "filter", "", "show rows that contain this text")
	jsonFlag(c, &f.json)
	return c
}

// topLines prints tables, or one object of JSON a line. The first look has no rates, and is not
// printed.
func topLines(ctx context.Context, s streams, f *topFlags, w *top.Watcher) error {
	out := screen.New(s.out)
	for first := true; ; first = false {
		look, err := w.Look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nits:ignore nilerr the user has ended it
		case err != nil:
			return err
		case f.once && !first && look.Silent() != nil:
			return look.Silent()
		case first:
		case f.json && f.once:
			return printJSON(s.out, look)
		case f.json:
			if err := printJSONLine(s.out, look); err != nil {
				return err
			}
		default:
			lines, _ := look.Lines(f.show, 0)
			out.Print(append(lines, "")...)
		}
		if f.once && !first {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(f.every):
		}
	}
}
