package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/doctor"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
)

// doctorFlags are the flags of "anser doctor".
type doctorFlags struct {
	registry sourceFlags
	tls      tlsFlags
	timeout  time.Duration
	from     []string
	strict   bool
	verbose  bool
	json     bool
}

const doctorExitHelp = `
Exit codes: 0 nothing failed, there may be warnings; 1 a check failed, or with --strict there is a warning; 2 wrong use.`

func newDoctor(s streams) *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:   "doctor [TARGET | REGISTRY]...",
		Short: "Say what is wrong with a server or a whole system, and what to do",
		Long: strings.TrimSpace(`
Examine servers: DNS, connection, TLS, protocols, authentication and clock; services of a registry: the registry itself,
records, leases, instances that do not answer, versions and contracts that differ, traffic rules without effect; and the
limits of this machine. Without an argument, examine all services of the registry. Nothing is changed, and no method of a
service is called.

Each finding is passed (✓), a note (·), a warning (‼) or a failure (✘), and says what to do. --verbose shows those that
passed of services, and where the time went: a step that hangs ends after --timeout.
`) + "\n" + doctorExitHelp,
		Example: strings.Trim(`
  anser doctor
  anser doctor arith
  anser doctor 10.0.0.7:8972 --ca ca.pem --verbose
  anser doctor etcd://10.0.0.1:2379 --json | jq '.groups[].findings[] | select(.status == "fail")'
  anser doctor arith --from 127.0.0.1:9000`, "\n"),
		ValidArgsFunction: func(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completeTarget(&f.registry, &f.tls)(c, nil, typed)
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), s, args) },
	}
	f.registry.add(c)
	f.tls.add(c)
	timeoutFlag(c, &f.timeout, 3*time.Second, "how long each step may take: a lookup, a connection, a handshake, a call")
	c.Flags().StringArrayVar(&f.from, "from", nil, "process whose clients are asked about breakers and ejected instances of the services; may be repeated")
	c.Flags().BoolVar(&f.strict, "strict", false, "fail for warnings, too")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show where the time went: DNS, connection, TLS, handshake, description")
	jsonFlag(c, &f.json)
	return c
}

// config returns the configuration of the examinations, without the registry.
func (f *doctorFlags) config() (*doctor.Config, error) {
	c := &doctor.Config{Timeout: f.timeout}
	var err error
	if c.Dial, err = f.tls.options(); err != nil {
		return nil, err
	}
	if c.TLS, err = f.tls.config(); err != nil {
		return nil, err
	}
	c.Source, err = f.registry.source()
	return c, err
}

// plan is what the arguments ask for.
type plan struct {
	targets  []string            // with addresses
	services map[string][]string // names, by the URL of the registry; none: all
	urls     []string            // keys of services, in order
}

func (p *plan) add(url string, names ...string) {
	if !slices.Contains(p.urls, url) {
		p.urls = append(p.urls, url)
	}
	p.services[url] = append(p.services[url], names...)
}

// plan sorts the arguments.
func (f *doctorFlags) plan(args []string) (*plan, error) {
	p := &plan{services: make(map[string][]string)}
	if len(args) == 0 {
		p.add(f.registry.url)
	}
	for _, typed := range args {
		if target.IsRegistry(typed) {
			p.add(typed)
			continue
		}
		full, err := target.Resolve(typed, f.registry.url)
		if err != nil {
			return nil, &usageError{err}
		}
		if url, name, ok := target.Split(full, f.registry.url); ok {
			p.add(url, name)
		} else {
			p.targets = append(p.targets, full)
		}
	}
	return p, nil
}

var errUnwell = errors.New("checks failed")

func (f *doctorFlags) run(ctx context.Context, s streams, args []string) error {
	config, err := f.config()
	if err != nil {
		return err
	}
	todo, err := f.plan(args)
	if err != nil {
		return err
	}
	var report doctor.Report
	out := screen.New(s.out)
	found := func(g *doctor.Group) {
		rephrase(g)
		report.Add(g)
		if !f.json {
			f.show(out, g)
		}
	}
	if err := f.examine(ctx, config, todo, found); err != nil {
		return &usageError{err}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	found(doctor.Machine())
	if f.json {
		err = printJSON(s.out, &report)
	} else {
		out.Print("", summary(&report))
	}
	if err == nil && (report.Failed > 0 || f.strict && report.Warned > 0) {
		err = &reportedError{errUnwell}
	}
	return err
}

// examine examines everything in the plan.
func (f *doctorFlags) examine(ctx context.Context, config *doctor.Config, todo *plan, found func(*doctor.Group)) error {
	for _, name := range todo.targets {
		groups, err := config.Target(ctx, name)
		if err != nil {
			return err
		}
		for _, g := range groups {
			found(g)
		}
	}
	var services []doctor.Service
	for _, url := range todo.urls {
		config.Source.URL = url
		list, err := config.System(ctx, todo.services[url], found)
		if err != nil {
			return err
		}
		services = append(services, list...)
	}
	for _, address := range f.from {
		found(config.Process(ctx, address, services))
	}
	return nil
}

// rephrase replaces advice of the libraries by flags of this command.
func rephrase(g *doctor.Group) {
	for i := range g.Findings {
		f := &g.Findings[i]
		f.Text = hints.Replace(f.Text)
	}
}

// The marks of findings, with their colours.
func mark(s doctor.Status) string {
	switch s {
	case doctor.Pass:
		return good.Render("✓")
	case doctor.Note:
		return "·"
	case doctor.Warn:
		return fair.Render("‼")
	}
	return bad.Render("✘")
}

// show prints a group.
func (f *doctorFlags) show(out *screen.Screen, g *doctor.Group) {
	width, _ := out.Size()
	if width == 0 {
		width = helpWidth
	}
	lines := []string{"", g.Name}
	for _, x := range g.Findings {
		text := x.Text
		if x.Subject != "" {
			text = x.Subject + ": " + text
		}
		lines = append(lines, wrapped("  "+mark(x.Status)+" ", "    ", text, width)...)
		if x.Advice != "" {
			lines = append(lines, wrapped("    → ", "      ", x.Advice, width)...)
		}
	}
	if f.verbose {
		for _, t := range g.Timings {
			lines = append(lines, wrapped("  time  ", "        ", t.Subject+": "+steps(t.Steps), width)...)
		}
	}
	out.Print(lines...)
}

// wrapped breaks a text into lines of at most width columns, with prefixes for the first line and
// the others.
func wrapped(first, next, text string, width int) []string {
	lines := strings.Split(ansi.Wrap(text, max(width-ansi.StringWidth(first), 20), " "), "\n")
	for i := range lines {
		if i == 0 {
			lines[i] = first + lines[i]
		} else {
			lines[i] = next + lines[i]
		}
	}
	return lines
}

// steps says where the time went.
func steps(list []doctor.Step) string {
	if len(list) == 0 {
		return "nothing was tried"
	}
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = s.Name + " " + table.Duration(time.Duration(s.Micros)*time.Microsecond)
		if s.Error != "" {
			parts[i] += " (failed: " + s.Error + ")"
		}
	}
	return strings.Join(parts, ", ")
}

func summary(r *doctor.Report) string {
	warnings := "warnings"
	if r.Warned == 1 {
		warnings = "warning"
	}
	line := fmt.Sprintf("%d passed, %d %s, %d failed", r.Passed, r.Warned, warnings, r.Failed)
	switch {
	case r.Failed > 0:
		return bad.Render(line)
	case r.Warned > 0:
		return fair.Render(line)
	}
	return good.Render(line)
}
