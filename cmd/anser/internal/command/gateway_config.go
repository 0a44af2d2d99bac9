package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

// gatewayTimeout is how long the registry may take for a configuration.
const gatewayTimeout = 10 * time.Second

func newGatewayCheck(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a configuration, and the files that it names",
		Long: strings.TrimSpace(`
Check a configuration: unknown keys, routes that match the same or nothing, routes to nothing, certificates that have
expired, and files that it names. Each mistake has its line.

Exit codes: 0 it is valid; 2 it has a mistake, or there is no such file.`),
		Example: "  anser gateway check edge.yaml",
		Args:    takes(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := gateway.Load(args[0])
			if err != nil {
				return &usageError{err}
			}
			fmt.Fprintf(s.out, "%s is valid: %d routes\n", args[0], len(c.Routes))
			return nil
		},
	}
}

func newGatewayDiff(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show what differs between two configurations",
		Long: strings.TrimSpace(`
Show what differs between two configurations in effect: comments, the order of keys and the way in which values are
written do not count. Both are checked.

Exit codes: 0 they are the same; 1 they differ; 2 one has a mistake.`),
		Example: "  anser gateway diff edge.yaml new.yaml",
		Args:    takes(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			var texts [2]string
			for i, file := range args {
				c, err := gateway.Load(file)
				if err != nil {
					return &usageError{err}
				}
				texts[i] = c.String()
			}
			if texts[0] == texts[1] {
				fmt.Fprintln(s.out, "no difference")
				return nil
			}
			for _, line := range diffLines(texts[0], texts[1]) {
				fmt.Fprintln(s.out, line)
			}
			return &reportedError{errors.New("the configurations differ")}
		},
	}
}

func newGatewayPut(s streams) *cobra.Command {
	var r sourceFlags
	c := &cobra.Command{
		Use:   "put NAME FILE",
		Short: "Put a configuration into the registry, where gateways follow it",
		Long: strings.TrimSpace(`
Put a configuration into the registry under a name, for gateways with --document NAME, which apply it at once. It is
checked first. If another change was made at the same time, nothing is changed.

Exit codes: 0 it is in the registry; 1 the registry failed; 2 it has a mistake; 4 it was changed at the same time.`),
		Example: "  anser gateway put edge edge.yaml",
		Args:    takes(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[1])
			if err != nil {
				return &usageError{err}
			}
			if _, err := gateway.Parse(args[1], text); err != nil {
				return &usageError{err}
			}
			return withStore(c.Context(), &r, func(ctx context.Context, store registry.Store) error {
				_, revision, _, err := gateway.LoadDocument(ctx, store, args[0])
				if err == nil {
					err = gateway.SaveDocument(ctx, store, args[0], revision, text)
				}
				if errors.Is(err, registry.ErrConflict) {
					return &refusedError{err}
				}
				if err == nil {
					fmt.Fprintf(s.out, "the configuration %s is %s\n", args[0], filepath.Base(args[1]))
				}
				return err
			})
		},
	}
	r.add(c)
	return c
}

func newGatewayShow(s streams) *cobra.Command {
	var r sourceFlags
	c := &cobra.Command{
		Use:     "show NAME",
		Short:   "Print a configuration that is in the registry",
		Long:    "Print a configuration that is in the registry.\n\nExit codes: 0 it is there; 1 it is not, or the registry failed; 2 wrong use.",
		Example: "  anser gateway show edge",
		Args:    takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return withStore(c.Context(), &r, func(ctx context.Context, store registry.Store) error {
				text, err := loadGateway(ctx, store, args[0])
				if err == nil {
					_, err = s.out.Write(text)
				}
				return err
			})
		},
	}
	r.add(c)
	return c
}

// withStore opens the registry for a change of its documents.
func withStore(ctx context.Context, r *sourceFlags, do func(context.Context, registry.Store) error) error {
	reg, err := r.open()
	if err != nil {
		return err
	}
	defer reg.Close()
	if err := target.Reach(ctx, r.url); err != nil {
		return err
	}
	store, err := reg.Store()
	if err != nil {
		return &usageError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, gatewayTimeout)
	defer cancel()
	return do(ctx, store)
}
