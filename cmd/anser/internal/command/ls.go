package command

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
)

// lsFlags are the flags of "anser ls".
type lsFlags struct {
	registry sourceFlags
	timeout  time.Duration
	watch    bool
	json     bool
}

// listing is the output of --json.
type listing struct {
	Registry string           `json:"registry"`
	Services []target.Service `json:"services"`
}

func newLs(s streams) *cobra.Command {
	var f lsFlags
	c := &cobra.Command{
		Use:   "ls [SERVICE...]",
		Short: "List the services of a registry and their instances",
		Long: "List the services of a registry and their instances, and the methods whose contracts are not the same in all\n" +
			"of them. With --watch the list is shown again after each change, in place on a terminal; with --json too, as one\n" +
			"object a line.",
		Example: strings.Trim(`
  anser ls
  anser ls arith --watch
  anser ls --registry etcd://127.0.0.1:2379 --json | jq '.services[].name'
  anser ls --registry file:///etc/anser/services.json
  anser ls arith --registry 'dns:///{service}.shop.internal:8972'`, "\n"),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := f.registry.open()
			if err != nil {
				return err
			}
			defer r.Close()
			if len(args) == 0 && !r.CanList() {
				return usagef("%s cannot list services: name some, as in \"anser ls arith\"", f.registry.url)
			}
			if f.watch {
				return watch(c.Context(), s, &f, r, args)
			}
			services, err := list(c.Context(), &f, r, args)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(s.out, listing{f.registry.url, services})
			}
			out := screen.New(s.out)
			width, _ := out.Size()
			out.Print(instanceLines(services, f.registry.url, width)...)
			return nil
		},
	}
	f.registry.add(c)
	timeoutFlag(c, &f.timeout, 3*time.Second, "how long to wait for the registry")
	c.Flags().BoolVarP(&f.watch, "watch", "w", false, "show the list again after each change, until interrupted")
	jsonFlag(c, &f.json)
	return c
}

// list asks the registry once.
func list(ctx context.Context, f *lsFlags, r *target.Registry, names []string) ([]target.Service, error) {
	limited, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if err := target.Reach(limited, f.registry.url); err != nil {
		return nil, err
	}
	services, err := r.List(limited, names...)
	var unknown *target.UnknownServiceError
	switch {
	case err == nil || errors.As(err, &unknown):
		return services, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, target.Unanswered(f.registry.url, err)
}

// watch shows the list whenever it has changed, until ctx is done. The services are listed every
// second, since a registry does not report new ones.
func watch(ctx context.Context, s streams, f *lsFlags, r *target.Registry, names []string) error {
	out := screen.New(s.out)
	var last []target.Service
	for first := true; ; first = false {
		services, err := list(ctx, f, r, names)
		switch {
		case ctx.Err() != nil:
			return nil //nits:ignore nilerr the user has ended it
		case err != nil:
			return err
		case first || !same(services, last):
			if f.json {
				err = printJSONLine(s.out, listing{f.registry.url, services})
			} else {
				showChange(out, services, f.registry.url)
			}
			if err != nil {
				return err
			}
		}
		last = services
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

const watchEvery = time.Second

func showChange(out *screen.Screen, services []target.Service, registryURL string) {
	width, _ := out.Size()
	lines := instanceLines(services, registryURL, width)
	if out.Terminal() {
		out.Draw(nil, lines)
		return
	}
	out.Print(append([]string{time.Now().Format("15:04:05")}, append(lines, "")...)...)
}

func same(a, b []target.Service) bool {
	return slices.EqualFunc(a, b, func(x, y target.Service) bool {
		return x.Name == y.Name && registry.Equal(x.Instances, y.Instances)
	})
}

// instanceLines returns the list as a table.
func instanceLines(services []target.Service, registryURL string, width int) []string {
	t := table.Table{Columns: []table.Column{
		{Title: "SERVICE"},
		{Title: "INSTANCE"},
		{Title: "ADDRESS"},
		{Title: "STATE"},
		{Title: "WEIGHT", Right: true},
		{Title: "ZONE", Optional: true},
		{Title: "VERSION", Optional: true},
	}}
	for _, s := range services {
		for _, in := range s.Instances {
			t.Add(s.Name, in.Key(), in.Address, stateText(in.State),
				strconv.Itoa(in.EffectiveWeight()), orDash(in.Zone), orDash(in.Version))
		}
		if len(s.Instances) == 0 {
			t.Add(s.Name, "-", "-", "gone", "-", "-", "-")
		}
	}
	if len(t.Rows) == 0 {
		return []string{"No service is registered at " + registryURL + "."}
	}
	lines := t.Lines(width)
	if drift := driftLines(services); len(drift) > 0 {
		lines = append(append(lines, ""), drift...)
	}
	return lines
}

var (
	good = lipgloss.NewStyle().Foreground(lipgloss.Green)
	fair = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	bad  = lipgloss.NewStyle().Foreground(lipgloss.Red)
)

func stateText(s registry.State) string {
	switch s {
	case registry.Up:
		return good.Render(s.String())
	case registry.Draining:
		return fair.Render(s.String())
	}
	return bad.Render(s.String())
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
