package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newHelp is the library's help command, which accepts any topic, but fails for an unknown
// command.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]...",
		Short:   "Show what a command does, and its flags",
		Example: "  anser help rules set",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (names []cobra.Completion, d cobra.ShellCompDirective) {
			if of, left, err := c.Root().Find(args); err == nil && len(left) == 0 {
				for _, sub := range of.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			of := c.Root()
			for _, name := range args {
				sub := subcommand(of, name)
				if sub == nil {
					return unknownCommand(of, name)
				}
				of = sub
			}
			of.InitDefaultHelpFlag()
			of.InitDefaultVersionFlag()
			return of.Help()
		},
	}
}

func subcommand(of *cobra.Command, name string) *cobra.Command {
	for _, sub := range of.Commands() {
		if sub.Name() == name || sub.HasAlias(name) {
			return sub
		}
	}
	return nil
}

// unknownCommand returns an error that lists the existing commands.
func unknownCommand(of *cobra.Command, name string) error {
	var names []string
	for _, sub := range of.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			names = append(names, sub.Name())
		}
	}
	instead := didYouMean(name, names)
	switch {
	case instead != "":
	case len(names) > 0:
		instead = "use one of " + strings.Join(names, ", ")
	default:
		instead = "it has no commands below it"
	}
	return usagef("unknown command %q for %q: %s", name, of.CommandPath(), instead)
}

func newMan(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "man [FOLDER]",
		Short: "Print the manual page, or write the pages of all commands into a folder",
		Long: "Print the manual page of anser in roff. With a folder, write the page of each command into it, in the format of man,\n" +
			"for a folder man1.",
		Example: strings.Trim(`
  anser man | man -l -
  anser man /usr/local/share/man/man1`, "\n"),
		Args: takes(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			root.DisableAutoGenTag = true // pages of the same version are equal
			header := &doc.GenManHeader{Section: "1", Source: "anser " + version().Version, Manual: "Anser"}
			if len(args) == 0 {
				return doc.GenMan(root, header, s.out)
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make the folder of the pages: %w", err)
			}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("write the pages: %w", err)
			}
			pages, err := filepath.Glob(filepath.Join(args[0], "anser*.1"))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%d pages are in %s.\n", len(pages), args[0])
			return err
		},
	}
}
