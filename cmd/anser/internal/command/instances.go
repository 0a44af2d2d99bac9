package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/operate"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// instancesFlags are the flags of the commands below "anser instances".
type instancesFlags struct {
	rules  rulesFlags
	state  string
	weight int
	tags   map[string]string
}

func newInstances(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "instances",
		Short: "Switch instances of a service off and on, weigh and tag them",
		Long: "Switch instances of a service off and on, weigh and tag them. The changes are rules of the service, which its\n" +
			"clients follow within a second, and which an instance keeps when it starts again. \"anser ls\" shows the keys of\n" +
			"instances, and \"anser rules history\" the changes.\n" + rulesExitHelp,
		Example: strings.Trim(`
  anser instances set arith arith-1 --state draining --comment "new disk"
  anser instances set arith arith-1 --state up
  anser instances set arith arith-2 --weight 10 --tag env=gray`, "\n"),
	}
	return under(c, newInstancesSet(s))
}

func newInstancesSet(s streams) *cobra.Command {
	var f instancesFlags
	c := &cobra.Command{
		Use:   "set SERVICE INSTANCE",
		Short: "Set the state, weight or tags of an instance",
		Long: "Set the state, weight or tags of an instance, by its key. Draining and disabled mean the same for clients: no\n" +
			"further calls, and those in flight finish. What the instance says of itself needs no rule: setting it removes one.\n" + rulesExitHelp,
		Example: strings.Trim(`
  anser instances set arith arith-1 --state disabled --comment "it loses replies"
  anser instances set arith arith-1 --state up --weight 0     # as before
  anser instances set arith arith-2 --tag env=gray`, "\n"),
		Args: takes(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			to, err := f.change(c)
			if err != nil {
				return err
			}
			return f.rules.with(c.Context(), args[0], func(ctx context.Context, r *target.Registry, store registry.Store) error {
				return f.set(ctx, s, r, store, args[0], args[1], to)
			})
		},
	}
	f.rules.add(c)
	c.Flags().StringVar(&f.state, "state", "", "up, draining or disabled")
	c.Flags().IntVar(&f.weight, "weight", 0, "1 to 1000000; 0 is the weight that the instance says")
	c.Flags().StringToStringVar(&f.tags, "tag", nil, "tags to set, as name=value; an empty value removes one")
	c.Flags().Lookup("tag").DefValue = "" // instead of []
	c.Flags().StringVarP(&f.rules.comment, "comment", "m", "", "reason for the change")
	c.Flags().StringVar(&f.rules.author, "author", "", "author of the change; by default the user's name")
	return c
}

// change returns the change in the flags.
func (f *instancesFlags) change(c *cobra.Command) (to operate.Change, err error) {
	to.Tags = f.tags
	if c.Flags().Changed("weight") {
		to.Weight = &f.weight
	}
	if f.state != "" {
		to.State = new(registry.State)
		if err := to.State.UnmarshalText([]byte(f.state)); err != nil {
			return to, &usageError{err}
		}
	}
	if to.State == nil && to.Weight == nil && len(to.Tags) == 0 {
		return to, usagef("nothing to set: use --state, --weight or --tag")
	}
	return to, nil
}

// editAttempts is how often a change is made again on top of another one.
const editAttempts = 5

func (f *instancesFlags) set(ctx context.Context, s streams, r *target.Registry, store registry.Store, service, key string, to operate.Change) error {
	list, err := registry.List(ctx, r, service)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(in registry.Instance) bool { return in.Key() == key })
	if i < 0 {
		var keys []string
		for n := range list {
			keys = append(keys, list[n].Key())
		}
		if len(keys) == 0 {
			return usagef("%s has no instance in %s", service, f.rules.registry.url)
		}
		return usagef("%s has no instance %q: it has %s", service, key, strings.Join(keys, ", "))
	}
	comment := key + ": " + to.String()
	if f.rules.comment != "" {
		comment += ": " + f.rules.comment
	}
	for n := 1; ; n++ {
		now, err := route.Load(ctx, store, service)
		if err != nil {
			return err
		}
		rules, err := operate.SetInstance(now.Rules, list[i], to)
		if err != nil {
			return &usageError{err}
		}
		next, err := route.Save(ctx, store, service, now.Version, rules, f.rules.by(), comment)
		if errors.Is(err, registry.ErrConflict) && n < editAttempts {
			continue // another change came first, of other rules
		}
		if err != nil || f.rules.json {
			return f.rules.saved(s, service, next, err)
		}
		in := rules.Adjust(list[i])
		screen.New(s.out).Print(fmt.Sprintf("Clients that follow the rules now see %s as %s with the weight %d. The rules of %s are at version %d.",
			key, in.State, in.EffectiveWeight(), service, next.Version))
		return nil
	}
}
