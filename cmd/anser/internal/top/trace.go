package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/telemetry"
)

// Trace has the calls of one trace that the processes of a system remember.
type Trace struct {
	ID       string        `json:"id"`
	Duration time.Duration `json:"duration"` // from the begin of the first call to the end of the last
	Calls    []TraceCall   `json:"calls"`    // each after the one that it is part of
	Silent   []string      `json:"silent,omitempty"`
}

// TraceCall is a call of a trace.
type TraceCall struct {
	Process string `json:"process"`
	Depth   int    `json:"depth"` // how many calls it is below
	// Start is when the call began, since the beginning of the trace. A server whose clock differs
	// from that of its caller has its times moved into the time of the caller.
	Start time.Duration `json:"start"`
	*telemetry.Call
}

// ErrNoTrace is the error of ReadTrace if no process remembers a call of the trace.
var ErrNoTrace = errors.New("no process remembers a call of the trace: they keep the latest calls that failed or were slow, and those of recorded traces")

// ReadTrace asks all processes for the calls of a trace. timeout is how long each may take.
func ReadTrace(ctx context.Context, r *admin.Reader, sources []Source, timeout time.Duration, id string) (*Trace, error) {
	docs, errs := make([]*admin.Document, len(sources)), make([]error, len(sources))
	var wg sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i := range sources {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			limited, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			docs[i], errs[i] = r.Document(limited, sources[i].Address, "trace?id="+id)
		})
	}
	wg.Wait()
	t := &tracer{of: &Trace{ID: id}}
	seen := make(map[string]bool)
	for i, d := range docs {
		if errs[i] != nil {
			t.of.Silent = append(t.of.Silent, errs[i].Error())
			continue
		}
		if d.Trace == nil || seen[d.Process.ID] {
			continue
		}
		seen[d.Process.ID] = true
		for _, c := range d.Trace.Calls {
			t.calls = append(t.calls, &traceNode{call: c, process: cmp.Or(sources[i].Instance, d.Process.Name), clock: d.Process.ID})
		}
	}
	if len(t.calls) == 0 {
		return nil, errors.Join(append(errs, ErrNoTrace)...)
	}
	t.arrange()
	return t.of, nil
}

// traceNode is a call with the calls that are part of it.
type traceNode struct {
	call     *telemetry.Call
	process  string
	clock    string
	parent   *traceNode
	children []*traceNode
	placed   bool
}

func (n *traceNode) began() time.Time { return n.call.Began() }

// tracer puts the calls of a trace in order.
type tracer struct {
	of    *Trace
	calls []*traceNode
	first time.Time
}

// arrange orders the calls: each is followed by its parts, in the order of time. Calls whose caller
// is not known are at the left. So are calls that claim to be below themselves.
func (t *tracer) arrange() {
	slices.SortStableFunc(t.calls, func(a, b *traceNode) int {
		return cmp.Or(a.began().Compare(b.began()), cmp.Compare(b.call.Duration, a.call.Duration))
	})
	t.first = t.calls[0].began()
	spans := make(map[string]*traceNode)
	for _, n := range t.calls {
		if id := n.call.SpanID; id != "" && spans[id] == nil {
			spans[id] = n
		}
	}
	var roots []*traceNode
	for _, n := range t.calls {
		if n.parent = spans[n.call.ParentID]; n.parent == nil || n.parent == n {
			n.parent = nil
			roots = append(roots, n)
			continue
		}
		n.parent.children = append(n.parent.children, n)
	}
	for _, n := range append(roots, t.calls...) {
		if !n.placed {
			n.parent = nil
			t.place(n, 0, n.began().Sub(t.first))
		}
	}
	for i := range t.of.Calls {
		c := &t.of.Calls[i]
		t.of.Duration = max(t.of.Duration, c.Start+c.Duration)
	}
}

// place adds a call that began at start, and the calls below it. The times of a server are moved
// into those of its caller if its clock says that they are outside.
func (t *tracer) place(n *traceNode, depth int, start time.Duration) {
	n.placed = true
	if p := n.parent; p != nil && p.clock != n.clock && n.call.Side == "server" && !n.call.Oneway {
		outer := t.of.Calls[t.indexOf(p)]
		if start < outer.Start || start+n.call.Duration > outer.Start+outer.Duration {
			start = outer.Start + max(outer.Duration-n.call.Duration, 0)/2
		}
	}
	t.of.Calls = append(t.of.Calls, TraceCall{n.process, depth, start, n.call})
	for _, c := range n.children {
		if !c.placed {
			t.place(c, depth+1, start+c.began().Sub(n.began()))
		}
	}
}

// indexOf returns the place of a call that has one.
func (t *tracer) indexOf(n *traceNode) int {
	return slices.IndexFunc(t.of.Calls, func(c TraceCall) bool { return c.Call == n.call })
}

const (
	timelineWidth = 24
	mostIndent    = 12
)

// Lines returns the trace as lines of text, none wider than width; 0 means any width.
func (t *Trace) Lines(width int) []string {
	processes, failed := make(map[string]bool), 0
	tab := table.Table{Columns: []table.Column{
		{Title: "CALL"},
		{Title: "PROCESS"},
		{Title: "START", Right: true},
		{Title: "DURATION", Right: true},
		{Title: "RESULT"},
		{Title: "TIMELINE", Optional: true},
		{Title: "WHERE THE TIME WENT", Optional: true},
	}}
	for i := range t.Calls {
		c := &t.Calls[i]
		processes[c.Process] = true
		if c.Code != anser.OK {
			failed++
		}
		indent := strings.Repeat("  ", min(c.Depth, mostIndent))
		tab.Add(indent+Printable(c.Side+" "+c.Method), Printable(c.Process), startOf(c), duration(c.Duration), Result(c.Call),
			t.timeline(c), Printable(withMessage(c.Call)))
		for j, a := range c.Attempts {
			tab.Add(fmt.Sprintf("%s  attempt %d", indent, j+1), Printable(cmp.Or(a.Address, "no instance")), "", duration(a.Duration),
				bad.Render(Printable(fmt.Sprintf("%s, %s", a.Code, a.Outcome))))
		}
	}
	text := fmt.Sprintf("trace %s  %s in %s  %s", Printable(t.ID), plural(len(t.Calls), "call"), plural(len(processes), "process"), duration(t.Duration))
	if failed > 0 {
		text += "  " + bad.Render(fmt.Sprintf("%d failed", failed))
	}
	lines := append([]string{text, ""}, tab.Lines(width)...)
	for _, s := range t.Silent {
		lines = append(lines, bad.Render(Printable(s)))
	}
	return lines
}

func startOf(c *TraceCall) string {
	if c.Start <= 0 {
		return "0"
	}
	return table.Duration(c.Start)
}

// timeline draws when a call ran.
func (t *Trace) timeline(c *TraceCall) string {
	if t.Duration <= 0 {
		return ""
	}
	at := func(d time.Duration) int {
		return int(min(max(float64(d)/float64(t.Duration), 0), 1) * timelineWidth)
	}
	from := min(at(c.Start), timelineWidth-1)
	to := max(at(c.Start+c.Duration), from+1)
	return strings.Repeat(" ", from) + strings.Repeat("█", to-from) + strings.Repeat(" ", timelineWidth-to)
}

// Stages says what took the time of a call on a server, without what took none.
func Stages(c *telemetry.Call) string {
	var parts []string
	for _, p := range []struct {
		name string
		took time.Duration
	}{{"queue", c.Queue}, {"decode", c.Decode}, {"handler", c.Handle}, {"encode", c.Encode}} {
		if p.took > 0 {
			parts = append(parts, p.name+" "+table.Duration(p.took))
		}
	}
	return strings.Join(parts, ", ")
}

func withMessage(c *telemetry.Call) string {
	parts := []string{Stages(c), c.Message}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}
