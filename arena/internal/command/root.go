// Package command is the command line of arena: one file for each command.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/arena/internal/build"
	"github.com/anser-rpc/anser/arena/internal/need"
	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/internal/repo"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// streams are what a command writes to.
type streams struct{ out, err io.Writer }

// Main runs the command and returns the exit code of the process. SIGINT, SIGTERM and SIGHUP end
// what runs in good order; a second one ends the process at once, and the peers with it.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop)
	return Run(ctx, args, os.Stdout, os.Stderr)
}

// Run runs the command with the given arguments and streams and returns its exit code.
func Run(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := newRoot(streams{out, errOut})
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(errOut, "arena: %v\n", err)
	var usage *usageError
	if errors.As(err, &usage) || strings.HasPrefix(err.Error(), "unknown command") {
		return exitUsage
	}
	return exitFailed
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "arena",
		Short: "Compare RPC frameworks on this machine",
		Long: strings.TrimSpace(`
The arena measures RPC frameworks under the same load: it builds the programs of each peer, runs a
server and a client of one peer after another, and measures their resource usage from outside. Run it
inside a clone of Anser; arena/README.md explains the results.`),
		Example: strings.Trim(`
  go run ./arena doctor --install                      # install what the peers need
  go run ./arena run --suite quick --json quick.json   # every peer, in less than an hour
  go run ./arena run --peers anser,go,-ceiling --callers 100,1000
  go run ./arena report quick.json --html quick.html   # open it in a browser
  go run ./arena compare before.json after.json        # what changed`, "\n"),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w: see %s --help", err, c.CommandPath())}
	})
	root.AddCommand(newList(s), newDoctor(s), newRun(s), newCompare(s), newReport(s), newHosts(s), newCodecs(s))
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 96"))
	return root
}

// usageError is a mistake in what the user typed.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// takes checks the number of arguments, and says what is missing.
func takes(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < n:
			return usagef("missing arguments: %s", c.UseLine())
		case len(args) > n:
			return usagef("%q is an unexpected argument: %s", args[n], c.UseLine())
		}
		return nil
	}
}

// printJSON writes v as one indented object.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// place is the repository, with its peers and what is needed to build them.
type place struct {
	root    string
	folders []*peer.Folder
	builder *build.Builder
}

// find loads what every command begins with.
func find() (*place, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	root, err := repo.Root(dir)
	if err != nil {
		return nil, err
	}
	folders, err := peer.Load(root)
	if err != nil {
		return nil, err
	}
	cache, err := build.Cache()
	if err != nil {
		return nil, err
	}
	return &place{root, folders, &build.Builder{Root: root, Cache: cache, Tools: new(need.Checker)}}, nil
}

// choose returns the peers of an expression.
func (p *place) choose(expression string) ([]*peer.Peer, error) {
	chosen, err := peer.Choose(p.folders, expression)
	if err != nil {
		return nil, &usageError{err}
	}
	return chosen, nil
}

// folders returns the folders of peers, each once.
func folders(peers []*peer.Peer) []*peer.Folder {
	var all []*peer.Folder
	seen := make(map[*peer.Folder]bool)
	for _, p := range peers {
		if !seen[p.Folder] {
			seen[p.Folder] = true
			all = append(all, p.Folder)
		}
	}
	return all
}

const peersHelp = "peers, folders or languages, separated by commas; the prefix - excludes one"
