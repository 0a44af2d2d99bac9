package admin

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

func methodsPage(d *Document, _ url.Values) []section {
	list := []section{methodsSection(d, "server", 0), methodsSection(d, "client", 0)}
	return append(list, servedSections(d)...)
}

// methodsSection lists the methods of a side, the busiest first, up to most; 0 means all.
func methodsSection(d *Document, side string, most int) section {
	s := section{Title: "Methods that the process serves", Empty: "No calls yet."}
	titles := []string{"Method", ">Calls/s", ">Failed/s", ">p50", ">p99", ">p99.9", ">Calls", ">Failed", "Errors by code", "Where the time goes", ">Slowest"}
	if side == "client" {
		s.Title = "Methods that the process calls"
		titles[9] = "Target"
	}
	s.Columns = columns(titles...)
	if side == "server" {
		s.Legend = steps
	}
	var of []*Method
	for i := range d.Methods {
		if d.Methods[i].Side == side {
			of = append(of, &d.Methods[i])
		}
	}
	slices.SortStableFunc(of, func(a, b *Method) int {
		if a.Recent == nil || b.Recent == nil {
			return 0
		}
		return cmp.Compare(b.Recent.Rate, a.Recent.Rate)
	})
	for i, m := range of {
		if most > 0 && i == most {
			s.Note = fmt.Sprintf("%d more are on the page of their own.", len(of)-most)
			break
		}
		s.Rows = append(s.Rows, methodRow(m))
	}
	return s
}

func methodRow(m *Method) []cell {
	all, failed := m.calls()
	link := "method?" + url.Values{"side": {m.Side}, "target": {m.Target}, "name": {m.Name}}.Encode()
	row := append([]cell{{Text: m.Name, Link: link}}, recentCells(m.Recent)...)
	tail := dim("–")
	if m.Recent != nil && m.Recent.Rate > 0 {
		tail = plain(span(m.Recent.P999))
	}
	row = append(row, tail, plain(fmt.Sprint(all)), number(failed, ""), codes(m))
	if m.Side == "server" {
		row = append(row, costs(m.Queue, m.Decode, m.Handle, m.Encode, 0))
	} else {
		row = append(row, plain(m.Target))
	}
	slowest := dim("–")
	if m.Slowest != nil {
		slowest = plain(span(m.Slowest.Duration))
	}
	return append(row, slowest)
}

// steps are the steps of a call on a server.
var steps = []string{"queue", "decode", "handle", "encode"}

// calls returns how many calls have ended, and how many of them failed.
func (m *Method) calls() (all, failed uint64) {
	for i := range m.Codes {
		c := &m.Codes[i]
		if all += c.Times.Count; c.Code != anser.OK {
			failed += c.Times.Count
		}
	}
	return all, failed
}

func codes(m *Method) cell {
	var list []string
	for _, c := range m.Codes {
		if c.Code != anser.OK && c.Times.Count > 0 {
			list = append(list, fmt.Sprintf("%s %d", c.Code, c.Times.Count))
		}
	}
	if m.Refused > 0 {
		list = append(list, fmt.Sprintf("(%d did not run)", m.Refused))
	}
	if m.Retried > 0 {
		list = append(list, fmt.Sprintf("(%d with retries)", m.Retried))
	}
	if len(list) == 0 {
		return dim("none")
	}
	return plain(strings.Join(list, ", "))
}

// costs draws the parts of a time as a bar. all is the whole time, or 0 if it is their sum.
func costs(queue, decode, handle, encode, all time.Duration) cell {
	parts := []struct {
		name string
		took time.Duration
	}{{"queue", queue}, {"decode", decode}, {"handle", handle}, {"encode", encode}}
	sum := queue + decode + handle + encode
	if rest := all - sum; rest > 0 {
		parts = append(parts, struct {
			name string
			took time.Duration
		}{"rest", rest})
		sum = all
	}
	if sum <= 0 {
		return dim("–")
	}
	var c cell
	var words []string
	from := 0.0
	for _, p := range parts {
		if p.took <= 0 {
			continue
		}
		share := float64(p.took) / float64(sum)
		hint := fmt.Sprintf("%s %.0f %%", p.name, 100*share)
		if all > 0 {
			hint = p.name + " " + span(p.took)
		}
		c.Parts = append(c.Parts, part{p.name, from, share, hint})
		words = append(words, hint)
		from += share
	}
	c.Text = strings.Join(words, ", ")
	c.Hint = c.Text
	return c
}

// servedSections list how the servers run their methods.
func servedSections(d *Document) (list []section) {
	for i := range d.Servers {
		v := &d.Servers[i]
		s := section{
			Title: "How the server runs them: " + cmp.Or(strings.Join(v.Addresses, ", "), "it does not listen"),
			Note:  "Inline calls run on the goroutine that reads their connection. The server learns where a method runs best, unless an option has fixed it.",
			Empty: "The server has no methods.",
			Columns: columns("Method", "Kind", "Runs", ">Run", ">Calls", ">Failed", ">Refused", ">In flight limit", ">Queue time limit", ">Adaptive limit", ">Running", ">Waiting",
				"Other names"),
		}
		for j := range v.Methods {
			s.Rows = append(s.Rows, servedRow(&v.Methods[j]))
		}
		list = append(list, s)
	}
	return list
}

func servedRow(m *ServedMethod) []cell {
	kind := "unary"
	switch {
	case m.Stream:
		kind = "stream"
	case m.Oneway:
		kind = "oneway"
	}
	if m.Idempotent {
		kind += ", idempotent"
	}
	if m.Builtin {
		kind += ", built in"
	}
	runs := m.Runs
	if m.Fixed {
		runs += ", fixed"
	}
	if m.Forwarded {
		runs = "forwarded"
	}
	run, limit, queue, adaptive := dim("–"), dim("none"), dim("none"), dim("none")
	if m.Run > 0 {
		run = plain(span(m.Run))
	}
	if m.MaxInFlight > 0 {
		limit = plain(fmt.Sprint(m.MaxInFlight))
	}
	if m.MaxQueueTime > 0 {
		queue = plain(span(m.MaxQueueTime))
	}
	if m.Limit > 0 {
		adaptive = plain(fmt.Sprint(m.Limit))
	}
	return []cell{
		plain(m.Name), dim(kind), plain(runs), run, plain(fmt.Sprint(m.Calls)), number(m.Failed, ""), number(m.Refused, "warn"), limit, queue, adaptive,
		number(m.Running, ""), number(m.Waiting, "warn"), dim(strings.Join(m.Aliases, ", ")),
	}
}

// methodPage shows one method.
func methodPage(d *Document, q url.Values) []section {
	at := slices.IndexFunc(d.Methods, func(m Method) bool {
		return m.Name == q.Get("name") && m.Side == cmp.Or(q.Get("side"), "server") && m.Target == q.Get("target")
	})
	if at < 0 {
		return []section{{Title: "Method", Empty: "No calls of such a method were seen: the pages of methods have links to all."}}
	}
	m := &d.Methods[at]
	one := methodsSection(&Document{Methods: d.Methods[at : at+1]}, m.Side, 0)
	one.Title = m.Name
	list := []section{one, histogramSection(m)}
	if m.Slowest != nil {
		slow := slowSection(&Calls{Calls: []*telemetry.Call{m.Slowest}}, d.Time)
		slow.Title = "Slowest call of the last minutes"
		list = append(list, slow)
	}
	return list
}

// histogramSection draws the durations of a method.
func histogramSection(m *Method) section {
	s := section{
		Title: "Durations of all calls", Note: "Since the process has started.", Empty: "No calls yet.",
		Columns: columns(">Up to", ">Calls", ">Share", ">Below", "Distribution"),
	}
	var sum telemetry.Histogram
	for i := range m.Codes {
		h := &m.Codes[i].Times
		sum.Add(&telemetry.Histogram{Count: h.Count, Sum: h.Sum, First: h.First, Counts: h.Counts})
	}
	most := uint64(0)
	for _, n := range sum.All() {
		most = max(most, n)
	}
	seen := uint64(0)
	for i, n := range sum.All() {
		seen += n
		share := float64(n) / float64(sum.Count)
		bar := cell{Text: strings.Repeat("#", int(30*n/most)), Parts: []part{{"count", 0, float64(n) / float64(most), percent(share)}}, Hint: percent(share)}
		s.Rows = append(s.Rows, []cell{plain(span(telemetry.Bound(i))), plain(fmt.Sprint(n)), plain(percent(share)), plain(percent(float64(seen) / float64(sum.Count))), bar})
	}
	return s
}
