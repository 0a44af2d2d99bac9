package command

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/internal/printable"
	"github.com/anser-rpc/anser/record"
)

// filterFlags choose the calls of a recording.
type filterFlags struct {
	methods []string
	since   string
	until   string
}

func (f *filterFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.methods, "method", nil, "pattern of methods, such as 'Orders.*'; may be repeated (default: all)")
	c.Flags().StringVar(&f.since, "since", "", "time of the first call, as 2026-11-24T03:00:00Z, or so long before the last one, as 30m")
	c.Flags().StringVar(&f.until, "until", "", "time of the first call that is left out, in the same ways")
}

// filter returns the filter of the flags for a recording.
func (f *filterFlags) filter(in *record.Recording) (record.Filter, error) {
	for _, p := range f.methods {
		if _, err := path.Match(p, ""); err != nil {
			return record.Filter{}, usagef("--method %q is not a pattern: use * for any characters, as in 'Orders.*'", p)
		}
	}
	last := in.Index().Last
	from, err := parseTime("--since", f.since, last)
	if err != nil {
		return record.Filter{}, err
	}
	to, err := parseTime("--until", f.until, last)
	if err != nil {
		return record.Filter{}, err
	}
	out := record.Filter{From: from, To: to}
	if len(f.methods) > 0 {
		out.Method = func(name string) bool {
			return slices.ContainsFunc(f.methods, func(p string) bool {
				ok, _ := path.Match(p, name) // it was checked
				return ok
			})
		}
	}
	return out, nil
}

// parseTime parses a time, or how long before last it is.
func parseTime(flag, text string, last time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return last.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usagef("%s %q is not a time: use 2026-11-24T03:00:00Z, or 30m for half an hour before the last call", flag, text)
	}
	return t, nil
}

// openRecording opens the files and folders of a recording.
func openRecording(names []string) (*record.Recording, error) {
	in, err := record.Open(names...)
	if err != nil {
		return nil, &usageError{err}
	}
	return in, nil
}

func newRecord(s streams) *cobra.Command {
	var f filterFlags
	var asJSON, calls bool
	c := &cobra.Command{
		Use:   "record FILE|FOLDER...",
		Short: "Show what is in a recording of calls",
		Long: strings.TrimSpace(`
Show the methods and times of a recording, or with --calls each call. Package record writes such files in a server; their
names end with .anrec. Values that are secret are not in them. What of a file is damaged is named and left out.

Exit codes: 0 it was read; 1 it could not be read; 2 wrong use.`),
		Example: strings.Trim(`
  anser record /var/lib/orders/calls
  anser record /var/lib/orders/calls --calls --method 'Orders.*' --since 30m
  anser record calls --calls --json | jq 'select(.code != "ok")'`, "\n"),
		Args: takes(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			in, err := openRecording(args)
			if err != nil {
				return err
			}
			defer in.Close()
			filter, err := f.filter(in)
			if err != nil {
				return err
			}
			if calls {
				return listCalls(c, s, in, filter, asJSON)
			}
			if f.methods != nil || f.since != "" || f.until != "" {
				return usagef("--method, --since and --until are for --calls: the index has all calls")
			}
			if asJSON {
				return printJSON(s.out, in.Index())
			}
			showIndex(s, in.Index())
			return nil
		},
	}
	f.add(c)
	jsonFlag(c, &asJSON)
	c.Flags().BoolVar(&calls, "calls", false, "show each call; with --json one object a line")
	return c
}

func showIndex(s streams, index record.Index) {
	out := screen.New(s.out)
	lines := []string{fmt.Sprintf("%s in %s, %s bytes", plural(index.Calls, "call"), plural(index.Files, "file"), table.Count(index.Bytes))}
	if index.Calls > 0 {
		lines = append(lines, fmt.Sprintf("from %s to %s", index.First.Format(time.RFC3339), index.Last.Format(time.RFC3339)), "")
		t := table.Table{Columns: []table.Column{{Title: "METHOD"}, {Title: "CALLS", Right: true}}}
		for _, name := range slices.Sorted(maps.Keys(index.Methods)) {
			t.Add(printable.Text(name), table.Count(int64(index.Methods[name])))
		}
		width, _ := out.Size()
		lines = append(lines, t.Lines(width)...)
	}
	for _, d := range index.Damaged {
		lines = append(lines, "damaged: "+printable.Text(d))
	}
	out.Print(lines...)
}

// listCalls prints the calls of a recording as they are read.
func listCalls(c *cobra.Command, s streams, in *record.Recording, f record.Filter, asJSON bool) error {
	for call, err := range in.Calls(f) {
		switch {
		case c.Context().Err() != nil:
			return nil //nits:ignore nilerr the user has ended it
		case errors.Is(err, record.ErrDamaged):
			fmt.Fprintf(s.err, "damaged: %s\n", printable.Text(err.Error()))
			continue
		case err != nil:
			return err
		case asJSON:
			if err := printJSONLine(s.out, call); err != nil {
				return err
			}
			continue
		}
		shown := spaced(call.Request)
		if call.Stream {
			shown = fmt.Sprintf("stream of %s", plural(len(call.Messages), "message"))
		}
		_, err := fmt.Fprintf(s.out, "%s  %s  %s  %s  %s\n", call.At.Format("2006-01-02T15:04:05.000Z"), printable.Text(call.Method),
			printable.Text(call.Code), table.Duration(call.Took), shortText(shown))
		if err != nil {
			return err
		}
	}
	return nil
}
