package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/arena/internal/document"
	"github.com/anser-rpc/anser/arena/internal/machine"
	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/internal/progress"
	"github.com/anser-rpc/anser/arena/internal/repo"
	"github.com/anser-rpc/anser/arena/internal/run"
	"github.com/anser-rpc/anser/arena/internal/suite"
	"github.com/anser-rpc/anser/arena/result"
)

func newRun(s streams) *cobra.Command {
	var f *runFlags
	c := &cobra.Command{
		Use:   "run",
		Short: "Measure peers",
		Long: strings.TrimSpace(`
Measure peers in turn, each with a new server and a new client, and print a table of the medians.
Without a suite, one line is measured per workload, number of callers and payload. By default each
peer uses the number of connections with which it is fastest under that load, chosen by short trials
of the supported ones (2 shared by all callers, a pool of 16, one per caller). --conns all measures
all of them.

Suites:
` + suiteHelp() + `
A round in which other processes took more than 5 % of the machine is repeated once, and marked when
they did so again.

Exit codes: 0 everything was measured; 1 a peer did not build, or the suite ci found a fault; 2 usage
error.`),
		Example: strings.Trim(`
  arena run --peers anser,ceiling --callers 1,100,1000 --conns 2
  arena run --peers go --workload add --callers 1 --fresh
  arena run --peers all,-java --callers 100 --rate 60%
  arena run --peers thrift-go,kitex --callers 100 --conns all
  arena run --suite full --json results.json
  arena run --resume results.json`, "\n"),
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error { return runCommand(c.Context(), s, f) },
	}
	f = newRunFlags(c.Flags())
	return c
}

func suiteHelp() string {
	var b strings.Builder
	for i := range suite.Suites {
		fmt.Fprintf(&b, "  %-6s %s\n", suite.Suites[i].Name, suite.Suites[i].Help)
	}
	return b.String()
}

func runCommand(ctx context.Context, s streams, f *runFlags) error {
	at, err := find()
	if err != nil {
		return err
	}
	doc, f, err := begin(ctx, at, f)
	if err != nil {
		return err
	}
	planned, err := f.plan()
	if err != nil {
		return err
	}
	peers, err := f.choose(at, planned)
	if err != nil {
		return err
	}
	if err := machine.RaiseFiles(); err != nil {
		return fmt.Errorf("allow more open files: %w", err)
	}
	plan := run.NewPlan(planned, peers, at.builder.Tools)
	if f.suite != "" && os.Geteuid() != 0 && plan.Hosts() {
		plan.WithoutHosts("two hosts need root")
	}
	doc.Machine = machine.Describe(at.builder.Tools, peers)
	publish(doc, planned)
	err = carryOut(ctx, s, at, f, planned, plan, doc)
	if ctx.Err() != nil {
		return f.interrupted()
	}
	return err
}

// begin returns the document to write into, with the flags that it began with.
func begin(ctx context.Context, at *place, f *runFlags) (*result.Document, *runFlags, error) {
	commit := repo.Commit(ctx, at.root, cmp.Or(f.resume, f.json))
	if f.resume == "" {
		return &result.Document{
			Schema: result.Schema, Command: f.command(), Commit: commit, Began: time.Now().UTC().Truncate(time.Second),
			Rows: []result.Row{},
		}, f, nil
	}
	doc, err := document.Read(f.resume)
	if err != nil {
		return nil, nil, err
	}
	first, err := parseCommand(doc.Command)
	if err != nil {
		return nil, nil, fmt.Errorf("resume %s: %w", f.resume, err)
	}
	if len(f.command()) > len([]string{"go", "run", "./arena", "run"}) || f.json != "" {
		return nil, nil, usagef("--resume uses the flags of the interrupted run: give no other flags")
	}
	if doc.Commit != commit {
		return nil, nil, fmt.Errorf("resume %s: its commit is %s, and the current one is %s: check out the commit of the run, or start a new run", f.resume, doc.Commit, commit)
	}
	if cpu := machine.Describe(at.builder.Tools, nil); cpu.CPU != doc.Machine.CPU || cpu.Cores != doc.Machine.Cores {
		return nil, nil, fmt.Errorf("resume %s: it was measured on another machine, and results of two machines are not comparable: start a new run", f.resume)
	}
	first.json = f.resume
	return doc, first, nil
}

// choose returns the peers of the run.
func (f *runFlags) choose(at *place, s *suite.Suite) ([]*peer.Peer, error) {
	if f.peers != "" || s.Folder == "" {
		return at.choose(f.peers)
	}
	for _, folder := range at.folders {
		if folder.Name == s.Folder {
			return folder.Peers, nil
		}
	}
	return nil, fmt.Errorf("the suite runs the peers of the folder %s, which does not exist: choose other peers with --peers", s.Folder)
}

// publish enters the published figures of a suite, once.
func publish(doc *result.Document, s *suite.Suite) {
	for i := range doc.Rows {
		if doc.Rows[i].Published != "" {
			return
		}
	}
	doc.Rows = append(doc.Rows, s.Published...)
}

// carryOut builds, measures and prints.
func carryOut(ctx context.Context, s streams, at *place, f *runFlags, planned *suite.Suite, plan *run.Plan, doc *result.Document) error {
	save := func() error {
		doc.Ended = time.Now().UTC().Truncate(time.Second)
		if f.json == "" || f.json == "-" {
			return nil
		}
		return document.Write(f.json, doc)
	}
	if err := save(); err != nil { // a file that cannot be written is told before all is measured
		return err
	}
	fmt.Fprintf(s.err, "%s of %s: about %s, without builds and repetitions\n",
		suite.Plural(len(plan.Steps), "measurement"), suite.Plural(plan.Peers(), "peer"), about(plan.Lasts()))
	shown := progress.New(s.err, len(plan.Steps))
	runner := &run.Runner{
		Builder: at.builder, Document: doc, Progress: shown, Save: save,
		Repeat: !f.noRepeat && !planned.Strict, Patient: planned.Strict, Syscalls: f.syscalls || planned.Syscalls, Grace: f.grace(),
	}
	broken := runner.Build(ctx, plan)
	doc.NotRun = plan.NotRun
	if ctx.Err() != nil {
		shown.End()
		return ctx.Err()
	}
	err := runner.Run(ctx, plan)
	shown.End()
	if err := errors.Join(err, save()); err != nil {
		if ctx.Err() != nil && f.json != "-" {
			showRun(s, doc) // what there is
		}
		return err
	}
	if f.json == "-" {
		err = document.Print(s.out, doc)
	} else {
		err = showRun(s, doc)
	}
	return errors.Join(err, broken, strict(planned, doc))
}

// strict returns what a strict suite does not forgive.
func strict(s *suite.Suite, doc *result.Document) error {
	if !s.Strict {
		return nil
	}
	faults := run.Faults(doc)
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%s:\n  %s", suite.Plural(len(faults), "fault"), strings.Join(faults, "\n  "))
}

func (f *runFlags) interrupted() error {
	if f.json == "" || f.json == "-" {
		return errors.New("interrupted: only a run with --json FILE can be resumed")
	}
	return fmt.Errorf("interrupted: continue with arena run --resume %s", f.json)
}

// about writes a duration as people say it.
func about(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 90*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f h %02.0f min", float64(int(d.Hours())), float64(int(d.Minutes())%60))
}
