// Package command is the command line of anser, with one file per command.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/internal/printable"
)

// streams are the standard streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Main runs the command and returns the exit code of the process. SIGINT, SIGTERM and SIGHUP end
// it gracefully; a second one ends the process at once. It also ends gracefully if its output is
// no longer read.
func Main(args []string) int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if len(args) == 0 || args[0] != "gateway" { // which reads its configuration again
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop)
	ctx, unread := context.WithCancel(ctx)
	defer unread()
	// A write to a pipe without a reader would end the process at once, and leave its files
	// behind. A handler for SIGPIPE is not an alternative: it would run for every broken connection
	// as well.
	signal.Ignore(syscall.SIGPIPE)
	return Run(ctx, args, os.Stdin, output{os.Stdout, unread}, output{os.Stderr, unread})
}

// output is one of the standard streams. It reports when it is no longer read. The file is not
// embedded: it has other methods that write.
type output struct {
	file   *os.File
	unread func()
}

// Fd allows package screen to detect a terminal.
func (o output) Fd() uintptr { return o.file.Fd() }

func (o output) Read(p []byte) (int, error) { return o.file.Read(p) }

func (o output) Close() error { return o.file.Close() }

func (o output) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		o.unread()
		err = errUnread
	}
	return n, err
}

// errUnread is the error of a write to a standard stream that is no longer read. It differs from
// that of a broken connection, which is a failure.
var errUnread = errors.New("the output is no longer read")

// Run runs the command with the given arguments and streams and returns its exit code.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	s := streams{in, out, errOut}
	root := newRoot(s)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil || errors.Is(err, errUnread) { // "anser record --calls FOLDER | head" has done its work
		return exitOK
	}
	var name string
	if _, other := fmt.Sscanf(err.Error(), `unknown command %q for "anser"`, &name); other == nil { // the library's error
		err = unknownCommand(root, name)
	}
	code := exitCode(err)
	var quiet *reportedError
	if !errors.As(err, &quiet) {
		fmt.Fprintf(errOut, "anser: %s\n", hints.Replace(errorText(err)))
	}
	return code
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "anser",
		Short: "List, describe, call and load services that speak Anser",
		Long: strings.TrimSpace(`
Anser is an RPC framework with service governance. This command works with its services from a
terminal; "anser demo" shows all of it at work on this machine.

A TARGET is the name of a service in the registry (arith), an address (127.0.0.1:8972), or a target
of anser.Dial (etcd://127.0.0.1:2379/arith, tls://a:1,b:2, unix:///path, wss://h:443/path).`),
		Example: strings.Trim(`
  anser demo                                      # three services, a registry, and traffic
  anser ls                                        # in a second terminal: the services
  anser describe arith                            # its methods, with an example of each message
  anser call arith Arith.Mul '{"A": 7, "B": 8}'`, "\n"),
		Version:       versionLine(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w: see %s --help", err, c.CommandPath())}
	})
	root.AddGroup(
		&cobra.Group{ID: groupServices, Title: "Services:"},
		&cobra.Group{ID: groupLocal, Title: "On this machine:"},
	)
	for _, c := range []*cobra.Command{newLs(s), newDescribe(s), newCall(s), newFile(s), newBench(s), newTop(s), newTail(s), newConsole(s), newRules(s), newInstances(s), newExplain(s), newDoctor(s), newRecord(s), newReplay(s), newMCP(s)} {
		c.GroupID = groupServices
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{newDemo(s), newRegistry(s), newGateway(s), newNew(s), newGen(s), newExport(s), newBreaking(s)} {
		c.GroupID = groupLocal
		root.AddCommand(c)
	}
	root.AddCommand(newInstance(s), newVersion(s), newMan(s))
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(newHelp())
	reflow(root)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	return root
}

// helpWidth is the maximum width of a help text.
const helpWidth = 96

// reflow wraps the help texts of a command, and of its subcommands, at the same width. An indented
// paragraph is a table and stays unchanged.
func reflow(c *cobra.Command) {
	paragraphs := strings.Split(strings.Trim(c.Long, "\n"), "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, "  ") { // a table
			continue
		}
		var b strings.Builder
		column := 0
		for _, word := range strings.Fields(p) {
			n := utf8.RuneCountInString(word)
			switch {
			case column == 0:
			case column+1+n > helpWidth:
				b.WriteByte('\n')
				column = 0
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += n
		}
		paragraphs[i] = b.String()
	}
	c.Long = strings.Join(paragraphs, "\n\n")
	for _, sub := range c.Commands() {
		reflow(sub)
	}
}

const (
	groupServices = "services"
	groupLocal    = "local"
)

// timeoutFlag adds the flag --timeout, which accepts durations above 0.
func timeoutFlag(c *cobra.Command, d *time.Duration, value time.Duration, usage string) {
	*d = value
	c.Flags().Var((*positive)(d), "timeout", usage)
}

// positive is a duration above 0 as the value of a flag.
type positive time.Duration

func (p *positive) String() string { return time.Duration(*p).String() }
func (p *positive) Type() string   { return "duration" }

// Set implements pflag.Value.
func (p *positive) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("use a time above 0, such as 5s or 200ms")
	}
	*p = positive(d)
	return nil
}

// under makes a command the parent of others. Without a subcommand it prints its help.
func under(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.AddCommand(commands...)
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		return unknownCommand(c, args[0])
	}
	return c
}

// takes checks the number of arguments, and reports what is missing.
func takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("arguments are missing: %s", c.UseLine())
		case most >= 0 && len(args) > most:
			return usagef("%q is one argument too many: %s", args[most], c.UseLine())
		}
		return nil
	}
}

// errorText returns the text of an error, of which a server may have chosen a part, without what
// could control a terminal. Its lines stay.
func errorText(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		parts := strings.Split(line, "\t")
		for j := range parts {
			parts[j] = printable.Text(parts[j])
		}
		lines[i] = strings.Join(parts, "\t")
	}
	return strings.Join(lines, "\n")
}
