package command

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

func newRulesDelete(s streams) *cobra.Command {
	var f rulesFlags
	c := &cobra.Command{
		Use:   "delete SERVICE",
		Short: "Delete all rules of a service, as the next version",
		Long: "Delete all rules of a service. The next version has none; the earlier ones stay in the history, and\n" +
			"\"anser rules rollback\" restores one of them.\n" + rulesExitHelp,
		Example: strings.Trim(`
  anser rules delete arith --comment "the canary is over"
  anser rules delete arith --base 12                 # unless they have changed since version 12`, "\n"),
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(c.Context(), args[0], func(ctx context.Context, _ *target.Registry, store registry.Store) error {
				return f.delete(ctx, s, args[0], store)
			})
		},
	}
	c.Flags().StringVarP(&f.comment, "comment", "m", "all rules deleted", "reason for the deletion")
	c.Flags().StringVar(&f.author, "author", "", "author of the change; by default the user's name")
	c.Flags().Int64Var(&f.base, "base", -1, "version that must be in force; -1 is the present one, whatever it is")
	return f.add(c)
}

func (f *rulesFlags) delete(ctx context.Context, s streams, service string, store registry.Store) error {
	now, err := route.Load(ctx, store, service)
	if err != nil {
		return err
	}
	base := now.Version
	if f.base >= 0 {
		base = uint64(f.base)
	}
	if base == now.Version && noRules(now) {
		return fmt.Errorf("%s has no rules: nothing was changed", service)
	}
	next, err := route.Save(ctx, store, service, base, route.RuleSet{}, f.by(), f.comment)
	if err != nil || f.json {
		return f.saved(s, service, next, err)
	}
	screen.New(s.out).Print(fmt.Sprintf("The rules of %s are deleted: version %d has none. \"anser rules rollback %s %d\" brings them back.",
		service, next.Version, service, base))
	return nil
}

// noRules reports whether a document has no rules, as before the first version and after a delete.
func noRules(d *route.Document) bool { return reflect.ValueOf(d.Rules).IsZero() }

// checkThere rejects a service with neither instances nor rules, as its name is probably mistyped.
func checkThere(ctx context.Context, r *target.Registry, now *route.Document, service, otherwise string) error {
	if now.Version > 0 {
		return nil
	}
	instances, err := registry.List(ctx, r, service)
	if err != nil || len(instances) > 0 {
		return err
	}
	unknown := fmt.Sprintf("the service %q has no instance in the registry, and no rules", service)
	if r.CanList() {
		names, err := r.Services(ctx)
		if err != nil {
			return err
		}
		switch near := didYouMean(service, names); {
		case near != "":
			unknown += ": " + near
		case len(names) > 0:
			unknown += ": there are " + strings.Join(names, ", ")
		}
	}
	return usagef("%s%s", unknown, otherwise)
}
