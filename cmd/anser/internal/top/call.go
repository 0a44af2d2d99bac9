package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/telemetry"
)

// Opened is one call that is shown, with its parts.
type Opened struct {
	Process string // name of the process that remembers it
	Call    *telemetry.Call
	// Trace are the calls that it is part of or consists of, once they were asked for; Trouble is
	// why there are none.
	Trace   *Trace
	Trouble string
}

// key identifies a call in a process.
func (o *Opened) key() string {
	return fmt.Sprint(o.Process, " ", o.Call.Time.UnixNano(), " ", o.Call.Side, " ", o.Call.Method, " ", o.Call.SpanID)
}

// latest returns the latest slow calls and failures that are shown.
func (p *Process) latest() (slow, failed []*telemetry.Call) {
	return p.Slow[:min(len(p.Slow), shownCalls)], p.Failures[:min(len(p.Failures), shownCalls)]
}

// calls returns the calls that can be opened, in the order in which they are shown.
func (l *Look) calls(s Show) (list []Opened) {
	if p := l.process(s.Process); p != nil {
		slow, failed := p.latest()
		for _, c := range append(slices.Clone(slow), failed...) {
			list = append(list, Opened{Process: p.Name, Call: c})
		}
		return list
	}
	if s.Method == nil {
		return nil
	}
	for i := range l.Processes {
		p := &l.Processes[i]
		for _, c := range append(slices.Clone(p.Slow), p.Failures...) {
			if c.Side != s.Method.Side || c.Method != s.Method.Name || c.Target != s.Method.Target {
				continue
			}
			next := Opened{Process: p.Name, Call: c}
			if !slices.ContainsFunc(list, func(o Opened) bool { return o.key() == next.key() }) { // it was slow and has failed
				list = append(list, next)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Opened) int { return b.Call.Time.Compare(a.Call.Time) })
	return list[:min(len(list), 2*shownCalls)]
}

// lines returns the call with its parts as lines of text.
func (o *Opened) lines(width int) []string {
	c := o.Call
	lines := []string{bold.Render(Printable(c.Method)) + faint.Render("  "+Printable(c.Side+" of "+o.Process))}
	say := func(name, text string) {
		if text != "" {
			lines = append(lines, faint.Render(fmt.Sprintf("%-9s", name))+text)
		}
	}
	say("ended", c.Time.Local().Format("15:04:05.000")+" after "+duration(c.Duration))
	say("result", Result(c)+Printable(strings.TrimRight("  "+c.Message, " ")))
	say("peer", Printable(c.Peer))
	say("target", Printable(c.Target))
	say("identity", Printable(c.Identity))
	say("instance", Printable(c.Pick.String()))
	if c.RequestBytes+c.ReplyBytes > 0 {
		say("bytes", fmt.Sprintf("%d of the request, %d of the reply", c.RequestBytes, c.ReplyBytes))
	}
	lines = append(lines, "")
	if parts := o.parts(); len(parts.Rows) > 0 {
		lines = append(append(lines, parts.Lines(width)...), "")
	}
	switch {
	case o.Trace != nil:
		lines = append(lines, o.Trace.Lines(width)...)
	case o.Trouble != "":
		for line := range strings.SplitSeq(o.Trouble, "\n") {
			lines = append(lines, faint.Render(Printable(line)))
		}
	case c.TraceID != "":
		lines = append(lines, faint.Render("Asking the processes for trace "+Printable(c.TraceID)+" …"))
	default:
		lines = append(lines, faint.Render("The call has no trace: its callers and the calls that it has made are not known."))
	}
	return lines
}

// parts is a table of what a call consists of: on a server its stages, on a client its attempts.
func (o *Opened) parts() table.Table {
	t := table.Table{Columns: []table.Column{{Title: "PART"}, {Title: "DURATION", Right: true}, {Title: "TIMELINE", Optional: true}, {Title: "RESULT", Optional: true}}}
	c, from := o.Call, time.Duration(0)
	line := &Trace{Duration: c.Duration}
	add := func(name string, took time.Duration, result string) {
		if took <= 0 {
			return
		}
		t.Add(name, duration(took), line.timeline(&TraceCall{Start: from, Call: &telemetry.Call{Duration: took}}), result)
		from += took
	}
	if c.Side == "server" {
		add("queue", c.Queue, "")
		add("decode", c.Decode, "")
		add("handler", c.Handle, "")
		add("encode", c.Encode, "")
	}
	for i, a := range c.Attempts {
		add(Printable(fmt.Sprintf("attempt %d at %s", i+1, cmp.Or(a.Address, "no instance"))), a.Duration,
			bad.Render(Printable(fmt.Sprintf("%s, %s  %s", a.Code, a.Outcome, a.Message))))
	}
	if len(t.Rows) > 0 {
		add("rest", c.Duration-from, "")
	}
	return t
}
