package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/arena/internal/build"
	"github.com/anser-rpc/anser/arena/internal/need"
	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/internal/table"
)

func newDoctor(s streams) *cobra.Command {
	var chosen string
	var install, builds bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Show, and install, the tools and packages that the peers need",
		Long: strings.TrimSpace(`
Show the tools and packages that the peers need, and how to install the missing ones. --install
installs Debian packages (needs root) and builds the peers. --build only builds them, which downloads
their libraries.

Exit codes: 0 nothing is missing; 1 something is missing or does not build.`),
		Example: "  arena doctor\n  arena doctor --install\n  arena doctor --build --peers go",
		Args:    takes(0),
		RunE: func(c *cobra.Command, _ []string) error {
			at, err := find()
			if err != nil {
				return err
			}
			peers, err := at.choose(chosen)
			if err != nil {
				return err
			}
			return doctor(c.Context(), s, at, folders(peers), install, install || builds)
		},
	}
	c.Flags().StringVar(&chosen, "peers", "all", peersHelp)
	c.Flags().BoolVar(&install, "install", false, "install missing tools and packages (needs root, on Debian), and build")
	c.Flags().BoolVar(&builds, "build", false, "build every peer that has all its tools and packages")
	return c
}

func doctor(ctx context.Context, s streams, at *place, folders []*peer.Folder, install, builds bool) error {
	if install {
		if err := installFor(ctx, s, at, folders); err != nil {
			return err
		}
	}
	var failed []error
	states := make(map[*peer.Folder]string)
	if builds {
		for _, f := range folders {
			state, err := buildOne(ctx, s, at, f)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			states[f] = state
			failed = append(failed, err)
		}
	}
	missing := showNeeds(s, at, folders, states)
	if len(missing) > 0 {
		failed = append(failed, fmt.Errorf("missing tools or packages for %s: see above", strings.Join(missing, ", ")))
	}
	return errors.Join(failed...)
}

// installFor installs the packages that any of the folders lacks.
func installFor(ctx context.Context, s streams, at *place, folders []*peer.Folder) error {
	var packages []string
	for _, f := range folders {
		more, _ := need.Advice(at.builder.Tools.Missing(f.Needs), f.Debian)
		packages = append(packages, more...)
	}
	packages = unique(packages)
	if len(packages) == 0 {
		return nil
	}
	fmt.Fprintf(s.err, "%s\n", need.Line(packages))
	if err := need.Install(ctx, packages, s.err); err != nil {
		return err
	}
	// What was looked for before may be there now.
	at.builder.Tools = new(need.Checker)
	return nil
}

func unique(words []string) []string {
	var out []string
	seen := make(map[string]bool)
	for _, w := range words {
		if !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}

func buildOne(ctx context.Context, s streams, at *place, f *peer.Folder) (state string, err error) {
	if len(at.builder.Tools.Missing(f.Needs)) > 0 {
		return "", nil // its needs say so
	}
	began := time.Now()
	built, err := at.builder.Build(ctx, f)
	var command *build.Error
	switch {
	case errors.As(err, &command):
		fmt.Fprintf(s.err, "%v\n%s\n", err, command.Said)
		return "DOES NOT BUILD", err
	case err != nil:
		return "", err
	case built:
		fmt.Fprintf(s.err, "built %s in %.1f s\n", f.Name, time.Since(began).Seconds())
	}
	return "built", nil
}

// showNeeds prints a line for each folder and what to do, and returns the folders that lack
// something.
func showNeeds(s streams, at *place, folders []*peer.Folder, states map[*peer.Folder]string) (lacking []string) {
	t := table.New("FOLDER", "LANGUAGE", "NEEDS", "STATE")
	var packages, others []string
	for _, f := range folders {
		var needs []string
		for _, n := range f.Needs {
			needs = append(needs, strings.TrimSpace(n+" "+at.builder.Tools.Version(n)))
		}
		state := states[f]
		if missing := at.builder.Tools.Missing(f.Needs); len(missing) > 0 {
			state = "MISSING " + strings.Join(missing, " ")
			lacking = append(lacking, f.Name)
			debian, other := need.Advice(missing, f.Debian)
			packages, others = append(packages, debian...), append(others, other...)
		} else if state == "" {
			state = "ready to build"
			if current, err := at.builder.Current(f); err == nil && current {
				state = "built"
			}
		}
		t.Add(f.Name, f.Language, strings.Join(needs, ", "), state)
	}
	t.Write(s.out)
	if len(packages) > 0 {
		fmt.Fprintf(s.out, "\nto do: %s\n", need.Line(unique(packages)))
	}
	for _, other := range unique(others) {
		fmt.Fprintf(s.out, "to do: %s\n", other)
	}
	return lacking
}
