package command

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/change"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// changing is the part of the console that changes something.
type changing struct {
	*change.Changes
	log     *audit.Log
	console *console.Console // set before the first request
	routes  map[string]http.Handler
}

// changing returns the part of the console that changes something.
func (f *consoleFlags) changing(ctx context.Context, reg *target.Registry) (*changing, error) {
	source, err := f.registry.source()
	if err != nil {
		return nil, err
	}
	store, err := reg.Store()
	if err != nil {
		return nil, &usageError{fmt.Errorf("--audit: %w", err)}
	}
	who, err := access.New(ctx, access.Options{Version: versionLine()})
	if err != nil {
		return nil, err
	}
	c := new(changing)
	if c.log, err = audit.Open(f.audit); err != nil {
		return nil, err
	}
	c.Changes, err = change.New(change.Deps{
		Access: who, Log: c.log, Registry: reg, Store: store, Figures: c.figures,
		Dial: func(typed string, opts ...anser.DialOption) (*anser.Client, error) {
			if full, err := target.Resolve(typed, source.URL); err == nil && target.KeepsRules(full) {
				opts = append(opts, route.Rules())
			}
			return target.Dial(typed, source, opts...)
		},
		Note: func(kind, service, instance, text, by string) {
			c.console.Note(model.Change{Kind: kind, Service: service, Instance: instance, Text: model.Text(text), By: by})
		},
	})
	if err != nil {
		c.log.Close()
		return nil, err
	}
	c.routes = c.Routes()
	for pattern, h := range who.Routes() {
		c.routes[pattern] = h
	}
	return c, nil
}

// lookAtCanary is how long the system is read every second after a look at a canary.
const lookAtCanary = 5 * time.Second

// figures returns the present figures of the instances of a service.
func (c *changing) figures(service string) (list []change.Figures) {
	c.console.Look(lookAtCanary)
	for _, in := range c.console.Instances(service) {
		f := change.Figures{
			Instance: registry.Instance{Service: service, ID: in.ID, Address: in.Address, Version: in.Version, Zone: in.Zone, Group: in.Group, Tags: in.Tags},
			Known:    in.Process != "" && in.Stale.IsZero(),
			Down:     in.Health == model.Down || in.Health == model.Ejected,
			Rate:     in.Rate, Failed: in.Failed, P99: in.P99,
		}
		if f.Instance.State.UnmarshalText([]byte(in.State)) == nil {
			list = append(list, f)
		}
	}
	return list
}

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
