package command

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo"
)

func newDemo(s streams) *cobra.Command {
	var o demo.Options
	var asJSON bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a registry, three services and traffic, and disturb them",
		Long: strings.TrimSpace(`
Run Anser on this machine: a registry, three services with three instances each, every instance a
process of its own, and traffic through them. Meanwhile a script of steps is repeated; each step is
announced, and its effect is reported at the end. No call fails.

  kill     an instance is killed (SIGKILL), and another takes its place
  restart  an instance drains (SIGTERM), and another takes its place
  canary   an instance of version 2.0 appears, and rules in the registry send it 10 % of the calls
  slow     an instance answers late, and gets few calls
  freeze   an instance is paused (SIGSTOP), is ejected, and comes back; on systems with SIGSTOP
  outage   the registry goes away and comes back

  arith  Arith.Add, Arith.Mul
  posts  Posts.Query, and a folder of files
  front  Front.Page, which calls the two others

A stock server of rpcx (Prices.Of), and a stock client of rpcx that calls arith through the gateway,
are among them if their program is there: see --rpcx.

While it runs, "anser ls", "anser describe arith", and "anser call" work in a second terminal. One
address speaks all protocols except net/rpc's gob and forwards calls to the instances: the demo
prints lines for curl, grpcurl and a browser, which shows the methods, and what agents may call as
tools. If its usual port is taken, it is a free one, and the demo says so. The console shows the
whole system in a browser, at --console.
Every process has an admin page, which "anser top" and "anser tail" read, and metrics for Prometheus,
which finds them at the address that the demo prints. Calls have trace ids; their spans go to the
collector in OTEL_EXPORTER_OTLP_ENDPOINT (http://127.0.0.1:4318), if there is one. Each instance
records one of 5 calls, up to 4 MiB, for "anser replay".
The figures are those of the demo's own callers. With --json, events go to the standard
error, and one object to the standard output at the end.

Exit codes: 0 no call failed; 1 one did, or the demo could not run; 2 wrong use.`),
		Example: strings.Trim(`
  anser demo
  anser demo --rate 1000 --every 2s
  anser demo --steps canary,freeze
  anser demo --for 10s --json`, "\n"),
		Args: takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			every := c.Flags().Lookup("every")
			if o.For > 0 && !every.Changed {
				o.Every = min(o.Every, o.For/time.Duration(len(demo.Steps())+1))
			}
			o.ServeElsewhere, o.Tools = !c.Flags().Changed("serve"), gatewayTools
			if err := checkDemo(&o); err != nil {
				return err
			}
			view := newDemoView(s, asJSON)
			sum, err := demo.Run(c.Context(), o, view)
			if sum.Registry != "" {
				if asJSON {
					printJSONLine(s.out, sum)
				} else {
					view.end(sum)
				}
			}
			if err == nil && sum.Errors > 0 {
				err = someFailed(sum.Errors, sum.Calls, sum.FirstErr)
			}
			return err
		},
	}
	c.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:2379", "address of the registry; port 0 chooses a free one")
	c.Flags().StringVar(&o.Serve, "serve", "127.0.0.1:8970", "address for curl, grpcurl and browsers; port 0 chooses a free one")
	c.Flags().StringVar(&o.Console, "console", defaultConsole, "loopback address of the console, a page that shows the whole system, or a free port if it is taken; \"\" means none")
	c.Flags().StringVar(&o.Data, "data", "", "directory in which the registry keeps its data (default a temporary one)")
	c.Flags().StringVar(&o.Record, "record", "", "folder for recordings of calls, which stay there (default a temporary one)")
	c.Flags().StringVar(&o.RPCX, "rpcx", "", "program with a stock client and a stock server of rpcx, which make demo builds (default anser-demo-rpcx next to this program, if it is there)")
	c.Flags().IntVarP(&o.Callers, "callers", "c", 4, "callers of each service")
	c.Flags().Float64Var(&o.Rate, "rate", 100, "calls per second to each service; 0 is as many as the callers make")
	c.Flags().DurationVar(&o.Every, "every", 4*time.Second,
		"time between the beginnings of two steps, with --for a seventh of it at most; 0: none")
	c.Flags().StringSliceVar(&o.Steps, "steps", nil, "the steps to perform: "+strings.Join(demo.Steps(), ", ")+" (default all)")
	c.Flags().DurationVar(&o.For, "for", 0, "duration of the traffic (default until interrupted)")
	jsonFlag(c, &asJSON)
	return c
}

func checkDemo(o *demo.Options) error {
	switch {
	case o.Callers < 1:
		return usagef("--callers %d: at least 1 is needed", o.Callers)
	case o.Rate < 0:
		return usagef("--rate %g: use calls per second, or 0 for as many as the callers make", o.Rate)
	case o.For < 0 || o.Every < 0:
		return usagef("--for and --every must not be negative")
	}
	if o.Console != "" {
		if err := (&site.Options{Listen: o.Console}).Check(); err != nil {
			return &usageError{err}
		}
	}
	if err := demo.CheckSteps(o.Steps); err != nil {
		return usagef("--steps: %v", err)
	}
	return nil
}

// newInstance is the command with which the demo starts its instances.
func newInstance(s streams) *cobra.Command {
	var o demo.InstanceOptions
	c := &cobra.Command{
		Use:    demo.InstanceCommand,
		Short:  "Run one instance of a service of the demo",
		Hidden: true,
		Args:   takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			return demo.ServeInstance(c.Context(), o, s.in, s.out, s.err)
		},
	}
	c.Flags().StringVar(&o.Service, "service", "", "name of the service")
	c.Flags().StringVar(&o.ID, "id", "", "name of the instance")
	c.Flags().StringVar(&o.Record, "record", "", "folder of its recording")
	c.Flags().StringVar(&o.Files, "files", "", "folder that posts serves")
	c.Flags().StringVar(&o.Version, "version", "", "version of the instance")
	c.Flags().StringVar(&o.Registry, "registry", "", "registry to register with")
	return c
}
