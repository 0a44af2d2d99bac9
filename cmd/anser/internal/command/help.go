package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

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
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completeCommands(c, args), cobra.ShellCompDirectiveNoFileComp
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

// completeCommands returns the commands below the one that args name.
func completeCommands(c *cobra.Command, args []string) (names []cobra.Completion) {
	if of, left, err := c.Root().Find(args); err == nil && len(left) == 0 {
		for _, sub := range of.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
			}
		}
	}
	return names
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
		Use:   "man [COMMAND... | FOLDER]",
		Short: "Print the manual page, or write the pages of all commands into a folder",
		Long: "Print the manual page of anser, or of one of its commands, in roff. With a folder, write the page of each command into\n" +
			"it, in the format of man, for a folder man1. Write a folder that is called as a command with ./ before it.",
		Example: strings.Trim(`
  anser man | man -l -
  anser man rules set | man -l -
  anser man /usr/local/share/man/man1`, "\n"),
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completeCommands(c, args), cobra.ShellCompDirectiveDefault
		},
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			root.DisableAutoGenTag = true // no line with the day at the end
			of, rest := root, args
			for len(rest) > 0 {
				sub := subcommand(of, rest[0])
				if sub == nil {
					break
				}
				of, rest = sub, rest[1:]
			}
			switch {
			case len(rest) == 0:
				page, err := manPage(of)
				if err != nil {
					return err
				}
				_, err = s.out.Write(page)
				return err
			case len(args) > 1:
				return unknownCommand(of, rest[0])
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make the folder of the pages: %w", err)
			}
			n, err := writePages(root, args[0])
			if err != nil {
				return fmt.Errorf("write the pages: %w", err)
			}
			_, err = fmt.Fprintf(s.out, "%d pages are in %s.\n", n, args[0])
			return err
		},
	}
}

// writePages writes the manual pages of a command and of those below it into a folder, and returns
// how many there are.
func writePages(c *cobra.Command, folder string) (n int, err error) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		below, err := writePages(sub, folder)
		if n += below; err != nil {
			return n, err
		}
	}
	page, err := manPage(c)
	if err != nil {
		return n, err
	}
	name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
	return n + 1, os.WriteFile(filepath.Join(folder, name), page, 0o644)
}

// manPage returns the manual page of a command. Its header has no date, so that the pages of a
// version are equal whenever they are written; the library would put the current month there.
func manPage(c *cobra.Command) ([]byte, error) {
	date := time.Unix(0, 0).UTC()
	var b bytes.Buffer
	header := &doc.GenManHeader{Section: "1", Source: "anser " + version().Version, Manual: "Anser", Date: &date}
	if err := doc.GenMan(c, header, &b); err != nil {
		return nil, err
	}
	return bytes.Replace(b.Bytes(), []byte(`"1" "`+date.Format("Jan 2006")+`"`), []byte(`"1" ""`), 1), nil
}
