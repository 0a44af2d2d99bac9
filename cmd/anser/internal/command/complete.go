package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/target"
)

// completionBound is how long a completion may take.
const completionBound = time.Second

// completeTarget offers the services of the registry as the first argument, and the methods of a
// target as the second.
func completeTarget(source *sourceFlags, secure *tlsFlags) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []cobra.Completion
		ctx, cancel := context.WithTimeout(c.Context(), completionBound)
		defer cancel()
		switch len(args) {
		case 0:
			names = serviceNames(ctx, source)
		case 1:
			methods, _ := describe(ctx, args[0], source, secure, completionBound)
			for _, m := range methods {
				names = append(names, m.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// serviceNames returns the known services, none if the registry does not answer.
func serviceNames(ctx context.Context, source *sourceFlags) []string {
	if target.Reach(ctx, source.url) != nil {
		return nil
	}
	r, err := source.open()
	if err != nil {
		return nil
	}
	defer r.Close()
	names, _ := r.Services(ctx)
	return names
}
