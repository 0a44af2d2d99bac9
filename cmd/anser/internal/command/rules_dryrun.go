package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

func newRulesDryRun(s streams) *cobra.Command {
	var f rulesFlags
	c := &cobra.Command{
		Use:   "dry-run SERVICE -f FILE [--from HOST:PORT]",
		Short: "Show the effect of rules, without putting them into force",
		Long: "Check the rules in a file, show which instances they select now, and with --from, which calls of the last minute\n" +
			"would have gone elsewhere. --from is the address of a process that calls the service and serves its sampled calls\n" +
			"(route.Recorder); \"anser demo\" prints the address of its own traffic. Nothing is changed.\n" + rulesExitHelp,
		Example: strings.Trim(`
  anser rules dry-run arith -f arith.yaml
  anser rules dry-run arith -f arith.yaml --from 127.0.0.1:9000`, "\n"),
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := f.read(s)
			if err != nil {
				return err
			}
			return f.with(c.Context(), args[0], func(ctx context.Context, r *target.Registry, _ registry.Store) error {
				instances, err := registry.List(ctx, r, args[0])
				if err != nil {
					return err
				}
				var recent route.RecentReply
				if f.from != "" {
					if err := f.recent(ctx, args[0], &recent); err != nil {
						return err
					}
				}
				rep := route.DryRun(&d.Rules, recent.Calls, instances)
				if f.json {
					return printJSON(s.out, rep)
				}
				f.showReport(s, rep)
				return nil
			})
		},
	}
	f.fileFlag(c)
	f.tls.add(c)
	c.Flags().StringVar(&f.from, "from", "", "process that serves its sampled calls")
	return f.add(c)
}

// recent asks a process for its sampled calls.
func (f *rulesFlags) recent(ctx context.Context, service string, reply *route.RecentReply) error {
	c, err := dial(ctx, f.from, &f.registry, &f.tls, anser.Codec(new(codec.JSON)))
	if err != nil {
		return err
	}
	defer c.Close()
	err = callOnce(ctx, c, f.timeout, func(ctx context.Context, opts ...anser.CallOption) error {
		return c.Call(ctx, route.RecentMethod, &route.RecentRequest{Service: service}, reply, opts...)
	})
	if e, ok := errors.AsType[*anser.Error](err); ok && e.Code == anser.Unimplemented {
		return fmt.Errorf("%w\n%s does not serve its calls: it must serve a route.Recorder", e, f.from)
	}
	return err
}

func (f *rulesFlags) showReport(s streams, rep *route.Report) {
	out := screen.New(s.out)
	width, _ := out.Size()
	lines := []string{"The rules are valid."}
	if len(rep.Effects) > 0 {
		t := table.Table{Columns: []table.Column{{Title: "RULE"}, {Title: "INSTANCES NOW"}}}
		for _, e := range rep.Effects {
			names := strings.Join(e.Instances, ", ")
			if names == "" {
				names = yellow.Render("none")
			}
			t.Add(e.Rule, names)
		}
		lines = append(append(lines, ""), t.Lines(width)...)
	}
	if f.from == "" {
		out.Print(append(lines, "", "With --from HOST:PORT, recorded calls are tried, too.")...)
		return
	}
	lines = append(lines, "", fmt.Sprintf("Of %d sampled calls of the last minute %d would have gone elsewhere, %d would have found no instance, %d would have been mocked; %d could have met a fault.",
		rep.Calls, rep.Moved, rep.Failed, rep.Mocked, rep.Faulted))
	if rep.Gone > 0 {
		lines = append(lines, fmt.Sprintf("%d more were answered by instances that no longer exist.", rep.Gone))
	}
	if len(rep.Unknown) > 0 {
		lines = append(lines, fmt.Sprintf("The rules use metadata that was not recorded, which counts as missing: %s. Pass these keys to route.NewRecorder.", strings.Join(rep.Unknown, ", ")))
	}
	if len(rep.Moves) > 0 {
		t := table.Table{Columns: []table.Column{{Title: "METHOD"}, {Title: "CALLS", Right: true}, {Title: "FROM"}, {Title: "TO ONE OF"}}}
		for _, m := range rep.Moves {
			to := strings.Join(m.To, ", ")
			if to == "" {
				to = red.Render("none")
			}
			t.Add(m.Method, strconv.Itoa(m.Calls), m.From, to)
		}
		lines = append(append(lines, ""), t.Lines(width)...)
	}
	out.Print(lines...)
}
