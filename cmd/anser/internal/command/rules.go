package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

const rulesExitHelp = `
Exit codes: 0 done; 1 something failed; 2 wrong use, or invalid rules; 4 refused, as
the rules have changed meanwhile.`

// rulesFlags are the flags of the commands below "anser rules".
type rulesFlags struct {
	registry sourceFlags
	timeout  time.Duration
	json     bool

	file    string
	author  string
	comment string
	base    int64
	version uint64
	to      uint64
	from    string
	create  bool
	tls     tlsFlags
}

func newRules(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "rules",
		Short: "Read and change the traffic rules of a service",
		Long: "Read and change the traffic rules of a service, which its clients follow within a second: conditions,\n" +
			"percentages, weights, states of instances, mocks, faults and limits. Files are YAML or JSON.\n" + rulesExitHelp,
		Example: strings.Trim(`
  anser rules get arith > arith.yaml
  anser rules dry-run arith -f arith.yaml --from 127.0.0.1:9000
  anser rules diff arith -f arith.yaml
  anser rules set arith -f arith.yaml --comment "10 % to 2.0"
  anser rules rollback arith 12
  anser rules delete arith`, "\n"),
	}
	return under(c, newRulesGet(s), newRulesSet(s), newRulesDelete(s), newRulesDiff(s), newRulesDryRun(s), newRulesHistory(s), newRulesRollback(s))
}

// add adds the common flags.
func (f *rulesFlags) add(c *cobra.Command) *cobra.Command {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(c.Context(), completionBound)
		defer cancel()
		return serviceNames(ctx, &f.registry), cobra.ShellCompDirectiveNoFileComp
	}
	f.registry.add(c)
	timeoutFlag(c, &f.timeout, 5*time.Second, "how long to wait for the registry")
	jsonFlag(c, &f.json)
	return c
}

// fileFlag adds the flag for the file of rules.
func (f *rulesFlags) fileFlag(c *cobra.Command) {
	c.Flags().StringVarP(&f.file, "file", "f", "", "file with the rules, YAML or JSON; - is standard input")
}

// with calls do with the registry of the flags.
func (f *rulesFlags) with(ctx context.Context, service string, do func(ctx context.Context, r *target.Registry, store registry.Store) error) error {
	if err := registry.CheckService(service); err != nil {
		return &usageError{err}
	}
	r, err := f.registry.open()
	if err != nil {
		return err
	}
	defer r.Close()
	store, err := r.Store()
	if err != nil {
		return &usageError{err}
	}
	limited, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if err := target.Reach(limited, f.registry.url); err != nil {
		return err
	}
	err = do(limited, r, store)
	if errors.Is(err, context.DeadlineExceeded) {
		return target.Unanswered(f.registry.url, err)
	}
	return err
}

// read reads the file of the flags.
func (f *rulesFlags) read(s streams) (*route.Document, error) {
	var data []byte
	var err error
	switch f.file {
	case "":
		return nil, usagef("no rules: name a file with -f, or - for standard input")
	case "-":
		data, err = io.ReadAll(io.LimitReader(s.in, registry.MaxDocument*4))
	default:
		data, err = os.ReadFile(f.file)
	}
	if err != nil {
		return nil, err
	}
	if len(data) > registry.MaxDocument {
		return nil, usagef("%s has %d bytes: at most %d", f.file, len(data), registry.MaxDocument)
	}
	text, err := yaml.YAMLToJSONStrict(data) // JSON is YAML
	if err != nil {
		return nil, usagef("%s is neither YAML nor JSON: %w", f.file, err)
	}
	d, err := route.Parse(text)
	if err != nil {
		return nil, usagef("%s:\n%w", f.file, err)
	}
	return d, nil
}

// yamlOf returns the YAML form of a document.
func yamlOf(v any) (string, error) {
	text, err := yaml.Marshal(v)
	return string(text), err
}

func newRulesGet(s streams) *cobra.Command {
	var f rulesFlags
	c := &cobra.Command{
		Use:   "get SERVICE",
		Short: "Print the rules of a service, as a file for \"anser rules set\"",
		Long: "Print the rules of a service as YAML, or with --json as JSON. The printed version is the one that \"anser rules\n" +
			"set\" expects to find: it refuses a file based on an older one.\n" + rulesExitHelp,
		Example: strings.Trim(`
  anser rules get arith > arith.yaml
  anser rules get arith --version 11 --json`, "\n"),
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(c.Context(), args[0], func(ctx context.Context, r *target.Registry, store registry.Store) error {
				return f.get(ctx, s, args[0], r, store)
			})
		},
	}
	c.Flags().Uint64Var(&f.version, "version", 0, "an earlier version; 0 is the present one")
	return f.add(c)
}

// get prints the rules. For a service without rules it prints a file to start from.
func (f *rulesFlags) get(ctx context.Context, s streams, service string, r *target.Registry, store registry.Store) error {
	d, err := route.Load(ctx, store, service)
	if err == nil && f.version > 0 {
		d, err = route.Version(ctx, store, service, f.version)
	}
	if err != nil {
		return err
	}
	if noRules(d) {
		if err := checkThere(ctx, r, d, service, ""); err != nil {
			return err
		}
		if f.version == 0 {
			fmt.Fprintf(s.err, "%s has no rules.\n", service)
		}
	}
	if f.json {
		return printJSON(s.out, d)
	}
	text, err := yamlOf(d)
	if err == nil {
		_, err = io.WriteString(s.out, text)
	}
	return err
}

// by returns the author of a change.
func (f *rulesFlags) by() string {
	if f.author != "" {
		return f.author
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func newRulesSet(s streams) *cobra.Command {
	var f rulesFlags
	c := &cobra.Command{
		Use:   "set SERVICE -f FILE",
		Short: "Replace the rules of a service",
		Long: "Replace the rules of a service by those in a file. It is refused if the rules have changed since\n" +
			"the version that the file names (a file without one is for a service without rules); --base names another. A service that has neither instances nor\n" +
			"rules requires --create, as its name may be mistyped.\n" + rulesExitHelp,
		Example: strings.Trim(`
  anser rules set arith -f arith.yaml --comment "10 % to 2.0"
  echo 'rules: {split: [{percent: 10, to: {version: "2.*"}}]}' | anser rules set arith -f -`, "\n"),
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := f.read(s)
			if err != nil {
				return err
			}
			for i, fault := range d.Rules.Faults {
				if !time.Now().Before(fault.Until) {
					return usagef("rules.faults[%d].until: %s is in the past: remove the fault, or set a later time", i, fault.Until.Format(time.RFC3339))
				}
			}
			base := d.Version
			if f.base >= 0 {
				base = uint64(f.base)
			}
			return f.with(c.Context(), args[0], func(ctx context.Context, r *target.Registry, store registry.Store) error {
				now, err := route.Load(ctx, store, args[0])
				if err == nil && !f.create {
					err = checkThere(ctx, r, now, args[0], "\nwith --create the rules are kept for instances that come later")
				}
				if err != nil {
					return err
				}
				next, err := route.Save(ctx, store, args[0], base, d.Rules, f.by(), f.comment)
				return f.saved(s, args[0], next, err)
			})
		},
	}
	f.fileFlag(c)
	c.Flags().StringVarP(&f.comment, "comment", "m", "", "reason for the change")
	c.Flags().StringVar(&f.author, "author", "", "author of the change; by default the user's name")
	c.Flags().Int64Var(&f.base, "base", -1, "version on which the change is based; -1 is the one in the file")
	c.Flags().BoolVar(&f.create, "create", false, "make rules for a service that has neither instances nor rules yet")
	return f.add(c)
}

// saved reports the result of a change.
func (f *rulesFlags) saved(s streams, service string, next *route.Document, err error) error {
	if conflict, ok := errors.AsType[*route.ConflictError](err); ok {
		return &refusedError{conflict}
	}
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(s.out, next)
	}
	screen.New(s.out).Print(fmt.Sprintf("The rules of %s are at version %d.", service, next.Version))
	return nil
}

func newRulesDiff(s streams) *cobra.Command {
	var f rulesFlags
	c := &cobra.Command{
		Use:   "diff SERVICE (-f FILE | --version N [--to M])",
		Short: "Show how rules differ",
		Long:  "Show how the rules in a file, or the rules of one version, differ from the present ones or from another version.\n" + rulesExitHelp,
		Example: strings.Trim(`
  anser rules diff arith -f arith.yaml
  anser rules diff arith --version 11
  anser rules diff arith --version 11 --to 12`, "\n"),
		Args: takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if (f.file == "") == (f.version == 0) {
				return usagef("name either a file with -f or a version with --version")
			}
			return f.with(c.Context(), args[0], func(ctx context.Context, _ *target.Registry, store registry.Store) error {
				return f.diff(ctx, s, args[0], store)
			})
		},
	}
	f.fileFlag(c)
	c.Flags().Uint64Var(&f.version, "version", 0, "compare from this version")
	c.Flags().Uint64Var(&f.to, "to", 0, "to this version; 0 is the present one")
	return f.add(c)
}

// rulesDiff is the output of "anser rules diff --json".
type rulesDiff struct {
	From  string   `json:"from"`
	To    string   `json:"to"`
	Same  bool     `json:"same"`
	Lines []string `json:"lines"` // with "+ ", "- " or "  " in front
}

func (f *rulesFlags) diff(ctx context.Context, s streams, service string, store registry.Store) error {
	old, err := route.Load(ctx, store, service)
	if err != nil {
		return err
	}
	next, name := old, "version "+strconv.FormatUint(old.Version, 10)
	to := name
	if f.file != "" {
		if next, err = f.read(s); err != nil {
			return err
		}
		to = f.file
	} else {
		if old, err = route.Version(ctx, store, service, f.version); err != nil {
			return err
		}
		name = "version " + strconv.FormatUint(f.version, 10)
		if f.to > 0 {
			if next, err = route.Version(ctx, store, service, f.to); err != nil {
				return err
			}
			to = "version " + strconv.FormatUint(f.to, 10)
		}
	}
	a, err := yamlOf(old.Rules)
	if err != nil {
		return err
	}
	b, err := yamlOf(next.Rules)
	if err != nil {
		return err
	}
	d := rulesDiff{From: name, To: to, Same: a == b, Lines: diffLines(a, b)}
	if f.json {
		return printJSON(s.out, d)
	}
	out := screen.New(s.out)
	if d.Same {
		out.Print(fmt.Sprintf("%s and %s are the same.", name, to))
		return nil
	}
	lines := []string{red.Render("--- " + name), green.Render("+++ " + to)}
	for _, l := range d.Lines {
		switch l[0] {
		case '-':
			l = red.Render(l)
		case '+':
			l = green.Render(l)
		}
		lines = append(lines, l)
	}
	out.Print(lines...)
	return nil
}

func newRulesHistory(s streams) *cobra.Command {
	var f rulesFlags
	c := &cobra.Command{
		Use:     "history SERVICE",
		Short:   "List the versions of the rules of a service: author, time and reason of each change",
		Long:    "List the versions of the rules of a service, newest first. The last 64 are kept.\n" + rulesExitHelp,
		Example: "  anser rules history arith",
		Args:    takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(c.Context(), args[0], func(ctx context.Context, _ *target.Registry, store registry.Store) error {
				list, err := route.History(ctx, store, args[0])
				if err != nil {
					return err
				}
				if f.json {
					if list == nil {
						list = []*route.Document{}
					}
					return printJSON(s.out, list)
				}
				out := screen.New(s.out)
				if len(list) == 0 {
					out.Print(fmt.Sprintf("%s has no rules.", args[0]))
					return nil
				}
				t := table.Table{Columns: []table.Column{{Title: "VERSION", Right: true}, {Title: "TIME"}, {Title: "AUTHOR"}, {Title: "COMMENT"}}}
				for _, d := range list {
					t.Add(strconv.FormatUint(d.Version, 10), d.Time.Format(time.RFC3339), cmp.Or(d.Author, "-"), cmp.Or(d.Comment, "-"))
				}
				width, _ := out.Size()
				out.Print(t.Lines(width)...)
				return nil
			})
		},
	}
	return f.add(c)
}

func newRulesRollback(s streams) *cobra.Command {
	var f rulesFlags
	c := &cobra.Command{
		Use:     "rollback SERVICE VERSION",
		Short:   "Restore the rules of an earlier version, as the next version",
		Long:    "Restore the rules of an earlier version, as the next version.\n" + rulesExitHelp,
		Example: "  anser rules rollback arith 12",
		Args:    takes(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			version, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil || version == 0 {
				return usagef("%q is not a version: use a number that \"anser rules history %s\" lists", args[1], args[0])
			}
			return f.with(c.Context(), args[0], func(ctx context.Context, _ *target.Registry, store registry.Store) error {
				next, err := route.Rollback(ctx, store, args[0], version, f.by())
				return f.saved(s, args[0], next, err)
			})
		},
	}
	c.Flags().StringVar(&f.author, "author", "", "author of the change; by default the user's name")
	return f.add(c)
}
