package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/replay"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/internal/printable"
)

// replayFlags are the flags of "anser replay".
type replayFlags struct {
	registry sourceFlags
	tls      tlsFlags
	follow   followFlags
	filter   filterFlags
	to, and  string
	metadata []string
	speed    float64
	rate     float64
	open     int
	timeout  time.Duration
	unsafe   bool
	once     bool
	ignore   []string
	json     bool
}

func newReplay(s streams) *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay FILE|FOLDER... --to TARGET [--and TARGET]",
		Short: "Send recorded calls again, and say how the replies differ",
		Long: strings.TrimSpace(`
Send the calls of a recording to a server, and compare its replies with the recorded ones: field by field, in JSON. With
--and, each call also goes to a second server, for example one with the version that is in use, and the replies of the two
are compared.

What differs anyway, such as times and random numbers, is learned: the server of --and, or without it the one of --to, is
asked twice, and fields in which its own replies differ as often are noise. --ignore leaves out others.

Calls are sent when they are due, whether earlier ones have ended or not, up to --open at once; a line says so if they are
late. Only methods that are marked idempotent are called, since the calls have happened already: --unsafe calls all of
them, once.

Exit codes: 0 the replies are the same; 1 they differ, or the replay failed; 2 wrong use; 3 to 6 a server does not say
which methods it has, with the outcome of that call as in "anser call".`),
		Example: strings.Trim(`
  anser replay /var/lib/orders/calls --to 127.0.0.1:8972
  anser replay calls --to new.example.org:443 --and orders.example.org:443 --tls --speed 10
  anser replay calls --to 127.0.0.1:8972 --rate 500 --method 'Orders.Get*' --since 1h
  anser replay calls --to 127.0.0.1:8972 --ignore updated_at --ignore Orders.Get:page.token --json`, "\n"),
		Args: takes(1, -1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), c, s, args) },
	}
	f.registry.add(c)
	f.tls.add(c)
	f.follow.add(c)
	f.filter.add(c)
	c.Flags().StringVar(&f.to, "to", "", "where the calls go: the version that is tested")
	c.Flags().StringVar(&f.and, "and", "", "where they go too: the version that it is compared with (default: the recording)")
	c.Flags().StringArrayVarP(&f.metadata, "header", "H", nil, "metadata to send with each call, as key:value; may be repeated")
	c.Flags().Float64Var(&f.speed, "speed", 1, "how much faster than recorded; 0 sends each call as soon as --open allows")
	c.Flags().Float64Var(&f.rate, "rate", 0, "calls per second, in place of their own times")
	c.Flags().IntVar(&f.open, "open", 1000, "most calls that are open at once")
	timeoutFlag(c, &f.timeout, 10*time.Second, "how long a call may take")
	c.Flags().BoolVar(&f.unsafe, "unsafe", false, "call methods that are not marked idempotent too")
	c.Flags().BoolVar(&f.once, "once", false, "do not ask twice to learn what differs anyway")
	c.Flags().StringArrayVar(&f.ignore, "ignore", nil, "field that is not compared, as updated_at, order.updated_at or METHOD:FIELD; may be repeated")
	jsonFlag(c, &f.json)
	return c
}

var errRepliesDiffer = errors.New("the replies differ")

func (f *replayFlags) run(ctx context.Context, c *cobra.Command, s streams, files []string) error {
	o, err := f.options(c)
	if err != nil {
		return err
	}
	in, err := openRecording(files)
	if err != nil {
		return err
	}
	defer in.Close()
	filter, err := f.filter.filter(in)
	if err != nil {
		return err
	}
	for _, typed := range []string{f.to, f.and} {
		if typed == "" {
			continue
		}
		opts, err := f.follow.options(typed, &f.registry)
		if err != nil {
			return err
		}
		client, err := dial(ctx, typed, &f.registry, &f.tls, opts...)
		if err != nil {
			return err
		}
		defer client.Close()
		o.Targets = append(o.Targets, replay.Target{Name: typed, Client: client})
	}
	report, err := replay.Run(ctx, in, filter, *o)
	if err != nil {
		return err
	}
	report.Damaged += int64(len(in.Index().Damaged))
	if f.json {
		if err := printJSON(s.out, report); err != nil {
			return err
		}
	} else {
		showReplay(s, report)
	}
	switch {
	case report.Differences > 0:
		return &reportedError{errRepliesDiffer}
	case report.Stopped:
		return errors.New("interrupted before all calls were sent")
	case report.Sent == 0:
		return errNothingSent
	}
	return nil
}

var errNothingSent = errors.New("no call was sent, so nothing is known: see --method, --since and --until, and --unsafe for methods that are not marked idempotent")

// options checks the flags.
func (f *replayFlags) options(c *cobra.Command) (*replay.Options, error) {
	switch {
	case f.to == "":
		return nil, usagef("--to is missing: say where the calls go")
	case f.rate != 0 && c.Flags().Changed("speed"):
		return nil, usagef("--rate and --speed contradict each other: use one of them")
	case !(f.rate >= 0 && f.rate <= 1e6):
		return nil, usagef("--rate is %v: use calls per second, up to 1000000", f.rate)
	case !(f.speed >= 0 && f.speed <= 1e6):
		return nil, usagef("--speed is %v: use 10 for ten times as fast, or 0 for no waiting", f.speed)
	case f.open < 1 || f.open > 1e6:
		return nil, usagef("--open is %d: use 1 to 1000000", f.open)
	}
	md, err := parseMetadata(f.metadata)
	if err != nil {
		return nil, err
	}
	ignored, err := replay.ParseIgnored(f.ignore)
	if err != nil {
		return nil, usagef("--ignore: %w", err)
	}
	if _, err := target.Resolve(f.to, f.registry.url); err != nil {
		return nil, usagef("--to: %w", err)
	}
	return &replay.Options{
		Speed: f.speed, Rate: f.rate, Open: f.open, Timeout: f.timeout, Unsafe: f.unsafe, Twice: !f.once, Ignored: ignored, Metadata: md,
	}, nil
}

// showReplay prints the report.
func showReplay(s streams, r *replay.Report) {
	out := screen.New(s.out)
	width, _ := out.Size()
	lines := []string{fmt.Sprintf("%s of %s sent to %s in %.1f s, compared with %s", table.Count(r.Sent), plural(int(r.Calls), "call"),
		strings.Join(r.Targets, " and "), r.Seconds, r.Baseline)}
	if r.Skipped > 0 {
		lines = append(lines, fmt.Sprintf("%s not sent, since their methods may not be called again (--unsafe)", table.Count(r.Skipped)))
	}
	if r.Behind > late {
		lines = append(lines, fmt.Sprintf("up to %s late: the machine or --open was not enough for this speed", table.Duration(r.Behind)))
	}
	if r.Damaged > 0 {
		lines = append(lines, fmt.Sprintf("%s of the recording damaged and left out", plural(int(r.Damaged), "part")))
	}
	lines = append(lines, "")
	lines = append(lines, replayTable(r).Lines(width)...)
	for _, m := range r.Methods {
		lines = append(lines, differenceLines(&m)...)
	}
	switch {
	case r.Differences > 0:
		lines = append(lines, "", verdict(r.Differences))
	case r.Sent > 0:
		lines = append(lines, "", "The replies are the same.")
	}
	out.Print(lines...)
}

// verdict says how many fields differ.
func verdict(fields int) string {
	if fields == 1 {
		return "One field differs."
	}
	return fmt.Sprintf("%s fields differ.", table.Count(int64(fields)))
}

// late is how late calls may be before a line says so.
const late = 100 * time.Millisecond

// replayTable has a row for each method.
func replayTable(r *replay.Report) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Title: "METHOD"},
		{Title: "SENT", Right: true},
		{Title: "DIFFER", Right: true},
		{Title: "RESULTS"},
		{Title: "P50 RECORDED", Right: true, Optional: true},
		{Title: "P50", Right: true},
		{Title: "P99 RECORDED", Right: true, Optional: true},
		{Title: "P99", Right: true},
	}}
	us := func(f float64) string { return table.Duration(time.Duration(f * 1e3)) }
	for _, m := range r.Methods {
		if m.Sent == 0 {
			t.Add(printable.Text(m.Name), "0", "", m.Why)
			continue
		}
		for i, a := range m.Targets {
			name, sent, differ := printable.Text(m.Name), table.Count(m.Sent), table.Count(m.Differing)
			if i > 0 {
				name, sent, differ = "  "+r.Targets[i], "", ""
			}
			t.Add(name, sent, differ, results(a.Codes), us(m.Recorded.P50), us(a.Latencies.P50), us(m.Recorded.P99), us(a.Latencies.P99))
		}
	}
	return t
}

// results writes codes with their numbers, the most frequent first.
func results(codes map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(codes), func(a, b string) int {
		if d := codes[b] - codes[a]; d != 0 {
			return int(min(max(d, -1), 1))
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %s", table.Count(codes[name]), name)
	}
	return strings.Join(names, ", ")
}

// differenceLines are the lines about the fields of a method.
func differenceLines(m *replay.Method) (lines []string) {
	var noise []string
	for _, d := range m.Differences {
		name := d.Path
		if name == "" {
			name = "(whole reply)"
		}
		if d.Noisy {
			noise = append(noise, printable.Text(name))
			continue
		}
		lines = append(lines, "", fmt.Sprintf("%s  %s differs in %s", printable.Text(m.Name), printable.Text(name), plural(int(d.Calls), "call")))
		if d.Noise > 0 {
			lines = append(lines, fmt.Sprintf("    %s in which the old version differs from itself", plural(int(d.Noise), "call")))
		}
		if e := d.Example; e != nil {
			lines = append(lines,
				"    old      "+shortText(orNothing(e.Old)), "    new      "+shortText(orNothing(e.New)),
				"    request  "+shortText(e.Request), "    at       "+e.At.Format(time.RFC3339Nano))
		}
	}
	if m.MorePaths > 0 {
		lines = append(lines, "", fmt.Sprintf("%s  further fields differ in %s", printable.Text(m.Name), plural(int(m.MorePaths), "call")))
	}
	if len(noise) > 0 {
		lines = append(lines, "", fmt.Sprintf("%s  noise: %s", printable.Text(m.Name), shortText(strings.Join(noise, ", "))))
	}
	return lines
}

// orNothing shows a value that is missing.
func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// widestText is the width of a message in a line.
const widestText = 120

// shortText returns a text from outside for a line: without control characters, and not too wide.
func shortText(text string) string { return ansi.Truncate(printable.Text(text), widestText, "…") }
