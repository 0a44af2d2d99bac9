package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/cmd/anser/internal/top"
	"github.com/anser-rpc/anser/telemetry"
)

// tailFlags are the flags of "anser tail".
type tailFlags struct {
	watchedFlags
	method, side string
	trace        string
	failed       bool
	slower       time.Duration
	sampled      float64
	rate, count  int
	bound        time.Duration
	json         bool
}

func newTail(s streams) *cobra.Command {
	var f tailFlags
	c := &cobra.Command{
		Use:   "tail [SERVICE|ADDRESS...]",
		Short: "Print calls as they happen",
		Long: "Print calls as they happen in the processes of a system, with their results and times. What is not printed,\n" +
			"because there are more calls than --rate, is counted.\n\n" +
			"With --trace ID, print the calls of one trace that the processes remember, in their order and below their callers:\n" +
			"the latest ones that failed or were slow, and those whose trace is recorded.\n\n" + watchedHelp,
		Example: strings.Trim(`
  anser tail arith
  anser tail --failed
  anser tail 127.0.0.1:8971 --method 'Arith.*' --slower 10ms
  anser tail --trace 4bf92f3577b34da6a3ce929d0e0e4736
  anser tail arith -n 100 --json | jq .duration`, "\n"),
		RunE: func(c *cobra.Command, args []string) error {
			q, err := f.query()
			if err != nil {
				return err
			}
			if f.trace != "" {
				return f.printTrace(c, s, args)
			}
			return f.run(c.Context(), s, args, q)
		},
	}
	f.add(c)
	fs := c.Flags()
	fs.StringVar(&f.method, "method", "", "calls of this method, or of those that begin with what is before a *")
	fs.StringVar(&f.side, "side", "", "calls that servers run (server) or that clients make (client)")
	fs.StringVar(&f.trace, "trace", "", "id of a trace whose calls are printed, instead of those that happen now")
	fs.BoolVar(&f.failed, "failed", false, "calls that failed")
	fs.DurationVar(&f.slower, "slower", 0, "calls that took at least as long")
	fs.Float64Var(&f.sampled, "sampled", 1, "fraction of the calls")
	fs.IntVar(&f.rate, "rate", 50, "calls per second of each process at most")
	fs.IntVarP(&f.count, "count", "n", 0, "end after this many calls; 0 means never")
	fs.DurationVar(&f.bound, "for", 0, "end after this time; 0 means never")
	jsonFlag(c, &f.json)
	return c
}

// query returns the query of a page's calls.
func (f *tailFlags) query() (url.Values, error) {
	q := url.Values{"rate": {strconv.Itoa(f.rate)}}
	switch {
	case f.side != "" && f.side != "server" && f.side != "client":
		return nil, usagef("--side %q: want server or client", f.side)
	case f.slower < 0:
		return nil, usagef("--slower %v: want at least 0", f.slower)
	case !(f.sampled > 0 && f.sampled <= 1):
		return nil, usagef("--sampled %v: want a fraction above 0 and up to 1", f.sampled)
	case f.rate < 1:
		return nil, usagef("--rate %d: want at least 1", f.rate)
	case f.count < 0 || f.bound < 0:
		return nil, usagef("-n and --for must not be below 0")
	}
	for name, value := range map[string]string{"method": f.method, "side": f.side} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.failed {
		q.Set("failed", "true")
	}
	if f.slower > 0 {
		q.Set("slower", f.slower.String())
	}
	if f.sampled < 1 {
		q.Set("sampled", strconv.FormatFloat(f.sampled, 'g', -1, 64))
	}
	return q, nil
}

// run prints calls until there are enough, the time is over, or no process is left.
func (f *tailFlags) run(ctx context.Context, s streams, args []string, q url.Values) error {
	find, end, err := f.finder(args)
	if err != nil {
		return err
	}
	defer end()
	sources, err := find(ctx)
	if err != nil {
		return err
	}
	reader, closeIdle := f.reader()
	defer closeIdle()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.bound > 0 {
		ctx, cancel = context.WithTimeout(ctx, f.bound)
		defer cancel()
	}
	p := &tailPrinter{flags: f, s: s, out: screen.New(s.out), cancel: cancel, many: len(sources) > 1}
	errs := make([]error, len(sources))
	var wg sync.WaitGroup
	for i, source := range sources {
		wg.Go(func() {
			name := source.Instance
			if name == "" {
				name = source.Address
			}
			skippedBefore := uint64(0)
			errs[i] = reader.Follow(ctx, source.Address, q, func(c *telemetry.Call, skipped uint64) {
				p.print(name, c, skipped-min(skipped, skippedBefore))
				skippedBefore = skipped
			})
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return p.err
	}
	return errors.Join(append(errs, p.err)...)
}

// tailPrinter prints the calls of all processes.
type tailPrinter struct {
	flags  *tailFlags
	s      streams
	out    *screen.Screen
	cancel context.CancelFunc
	many   bool // several processes

	mu      sync.Mutex // guards the fields below, and out
	printed int
	err     error
}

// tailLine is a call in JSON.
type tailLine struct {
	Instance string `json:"instance"`
	*telemetry.Call
	Skipped uint64 `json:"skipped,omitempty"` // calls since the last one of this process that were left out
}

func (p *tailPrinter) print(name string, c *telemetry.Call, skipped uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || p.flags.count > 0 && p.printed >= p.flags.count {
		return
	}
	p.printed++
	if p.flags.json {
		p.err = printJSONLine(p.s.out, tailLine{name, c, skipped})
	} else {
		p.out.Print(p.line(name, c, skipped))
	}
	if p.err != nil || p.printed == p.flags.count {
		p.cancel()
	}
}

func (p *tailPrinter) line(name string, c *telemetry.Call, skipped uint64) string {
	parts := []string{faint.Render(c.Time.Local().Format("15:04:05.000"))}
	if p.many {
		parts = append(parts, fmt.Sprintf("%-10s", top.Printable(name)))
	}
	parts = append(parts, fmt.Sprintf("%-6s", top.Printable(c.Side)), fmt.Sprintf("%-20s", top.Printable(c.Method)), fmt.Sprintf("%8s", table.Duration(c.Duration)), top.Result(c))
	if c.Side == "server" && c.Handle > 0 {
		parts = append(parts, faint.Render(top.Stages(c)))
	}
	if c.Peer != "" {
		parts = append(parts, faint.Render(top.Printable(c.Peer)))
	}
	if pick := c.Pick.String(); pick != "" {
		parts = append(parts, faint.Render("picked "+top.Printable(pick)))
	}
	if c.Attempt > 0 {
		parts = append(parts, fmt.Sprintf("attempt %d", c.Attempt+1))
	}
	if c.Message != "" {
		parts = append(parts, top.Printable(c.Message))
	}
	if c.TraceID != "" {
		parts = append(parts, faint.Render("trace "+top.Printable(c.TraceID)))
	}
	if skipped > 0 {
		parts = append(parts, faint.Render(fmt.Sprintf("(%d left out before)", skipped)))
	}
	return strings.Join(parts, "  ")
}
