package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

func newConsoleUser(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "user",
		Short: "Add, list and remove the users who may log in to a console",
		Long: "Add, list and remove the users who may log in to a console that was started with --users. The console notices a\n" +
			"change of the file within a second: a user who is removed, or has a new role or password, is logged out.",
		Example: strings.Trim(`
  anser console user add ada --role operate --users users.json
  anser console user list --users users.json
  anser console user remove ada --users users.json`, "\n"),
	}
	return under(c, newConsoleUserAdd(s), newConsoleUserList(s), newConsoleUserRemove(s))
}

// usersFlag adds the flag with the file of users.
func usersFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "users", "", "file of users; required")
	c.PreRunE = func(*cobra.Command, []string) error {
		if *file == "" {
			return usagef("--users is missing: name the file of users")
		}
		return nil
	}
}

func newConsoleUserAdd(s streams) *cobra.Command {
	var file, role string
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a user, or set the role and the password of one",
		Long: fmt.Sprintf("Add a user, or set the role and the password of one. The password is asked for in a terminal, and is otherwise the\n"+
			"first line of the standard input. The file holds its hash of bcrypt, which takes %d to 72 bytes.\n\n", access.MinPassword) +
			"The role look may read everything but the list of users, operate may also change instances, rules, canaries and\n" +
			"faults, and call methods, and administer may also see the users.\n\nExit codes: 0 the file was written; 1 it was not; 2 wrong use.",
		Example: strings.Trim(`
  anser console user add ada --role operate --users users.json
  pass show console/ada | anser console user add ada --role operate --users users.json`, "\n"),
		Args: takes(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			var r access.Role
			if err := r.UnmarshalText([]byte(role)); err != nil {
				return &usageError{fmt.Errorf("--role: %w", err)}
			}
			password, err := readPassword(s)
			if err != nil {
				return err
			}
			if err := access.SetUser(file, args[0], r, password); err != nil {
				return err
			}
			screen.New(s.out).Print(fmt.Sprintf("%s may %s: see \"anser console --users %s\"", args[0], r, file))
			return nil
		},
	}
	usersFlag(c, &file)
	c.Flags().StringVar(&role, "role", access.Look.String(), "role of the user: look, operate or administer")
	return c
}

// maxPasswordLine is the maximum length of the line with a password, in bytes.
const maxPasswordLine = 1 << 10

// readPassword reads a password twice from a terminal, or the first line of the standard input.
func readPassword(s streams) (string, error) {
	f, ok := s.in.(*os.File)
	if !ok || !term.IsTerminal(f.Fd()) {
		line, err := bufio.NewReader(io.LimitReader(s.in, maxPasswordLine)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("the password on the standard input: %w", err)
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	var typed [2]string
	for i, prompt := range []string{"Password: ", "Again: "} {
		fmt.Fprint(s.err, prompt)
		data, err := term.ReadPassword(f.Fd())
		fmt.Fprintln(s.err)
		if err != nil {
			return "", fmt.Errorf("the password: %w", err)
		}
		typed[i] = string(data)
	}
	if typed[0] != typed[1] {
		return "", errors.New("the two passwords differ: type the same one twice")
	}
	return typed[0], nil
}

func newConsoleUserList(s streams) *cobra.Command {
	var file string
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the users and their roles",
		Long:    "List the users and their roles.\n\nExit codes: 0 the file was read; 1 it was not; 2 wrong use.",
		Example: "  anser console user list --users users.json",
		Args:    takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			u, err := access.OpenUsers(file)
			if err != nil {
				return err
			}
			list := u.List()
			if asJSON {
				return printJSON(s.out, list)
			}
			t := &table.Table{Columns: []table.Column{{Title: "USER"}, {Title: "ROLE"}}}
			for _, user := range list {
				t.Add(user.Name, user.Role.String())
			}
			out := screen.New(s.out)
			width, _ := out.Size()
			out.Print(t.Lines(width)...)
			return nil
		},
	}
	usersFlag(c, &file)
	jsonFlag(c, &asJSON)
	return c
}

func newConsoleUserRemove(s streams) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a user",
		Long:    "Remove a user, who is logged out of the console within some seconds.\n\nExit codes: 0 the file was written; 1 it was not; 2 wrong use.",
		Example: "  anser console user remove ada --users users.json",
		Args:    takes(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := access.RemoveUser(file, args[0]); err != nil {
				return err
			}
			screen.New(s.out).Print(args[0] + " can no longer log in.")
			return nil
		},
	}
	usersFlag(c, &file)
	return c
}
