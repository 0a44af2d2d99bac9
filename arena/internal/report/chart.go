package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Sizes of a chart, in pixels at a width of 800.
const (
	chartWidth  = 800.0
	chartMargin = 20.0
	rowHeight   = 24.0
	barHeight   = 13.0
)

// chart is one of the four charts: what differs between them.
type chart struct {
	name   string // of the file
	title  string
	better string
	figure string    // sorted by it
	legend []segment // the parts of a row, in addition to the languages
	value  func(e *entry) string
	label  func(v float64) string // of the axis
	most   func(e *entry) float64 // where its row ends
	draw   func(d *drawing, a *axis, e *entry, class string, y float64)
}

// segment is a line of the legend.
type segment struct{ class, text string }

// stacked are the segments of client and server.
var stacked = []segment{{"bar", "client"}, {"soft", "server"}}

var charts = []chart{
	{
		name: "throughput.svg", title: "Throughput, calls/s", better: "more is better", figure: "throughput",
		value: func(e *entry) string { return e.text("throughput") },
		label: shortCount,
		most:  func(e *entry) float64 { return spanEnd(e, "throughput") },
		draw: func(d *drawing, a *axis, e *entry, class string, y float64) {
			drawBar(d, a, 0, e.value(figureOf("throughput")), y, "bar "+class, e.status)
			drawWhisker(d, a, e, "throughput", y)
		},
	},
	{
		name: "cpu.svg", title: "CPU time for a call, µs", better: "less is better", figure: "cpu", legend: stacked,
		value: func(e *entry) string { return e.text("cpu") },
		label: shortCount,
		most:  func(e *entry) float64 { return spanEnd(e, "cpu") },
		draw: func(d *drawing, a *axis, e *entry, class string, y float64) {
			drawStack(d, a, e, "client-cpu", "cpu", class, y)
			drawWhisker(d, a, e, "cpu", y)
		},
	},
	{
		name: "latency.svg", title: "Latency", better: "p50 / p99, sorted by p99; less is better", figure: "p99",
		legend: []segment{{"dot", "p50"}, {"ring", "p90"}, {"diamond", "p99"}, {"hole", "p99.9"}},
		value: func(e *entry) string {
			return durationValue(e.value(figureOf("p50"))) + " / " + durationValue(e.value(figureOf("p99")))
		},
		label: durationLabel,
		most:  func(e *entry) float64 { return spanEnd(e, "p99.9") },
		draw:  drawLatency,
	},
	{
		name: "memory.svg", title: "Resident memory, MiB", better: "less is better", figure: "memory", legend: stacked,
		value: func(e *entry) string { return e.text("memory") },
		label: shortCount,
		most:  func(e *entry) float64 { return spanEnd(e, "memory") },
		draw: func(d *drawing, a *axis, e *entry, class string, y float64) {
			drawStack(d, a, e, "client-memory", "memory", class, y)
			drawWhisker(d, a, e, "memory", y)
		},
	},
}

// chartsOf draws the charts of the headline's group, by the names of their files.
func chartsOf(c *comparison) map[string][]byte {
	files := make(map[string][]byte)
	g := c.headline()
	for i := range charts {
		files[charts[i].name] = charts[i].file(c, g)
	}
	return files
}

// file draws the rows that were measured, best first.
func (ch *chart) file(c *comparison, g *group) []byte {
	if g == nil {
		d := newDrawing(chartWidth, 80, ch.title, "The run has no row to draw.")
		d.text(chartMargin, 46, "", "The run has no row to draw.")
		return d.bytes()
	}
	f := figureOf(ch.figure)
	entries := slices.DeleteFunc(g.sorted(f), func(e *entry) bool {
		return e.status == published || e.status == invalid || math.IsNaN(e.value(f))
	})
	subtitle := wrap(fmt.Sprintf("%s: %s. %s; %s.", g.workload, g.label, rangesText(c), ch.better), chartWidth-2*chartMargin)
	footer := wrap(footerText(c, g, f), chartWidth-2*chartMargin)
	top := 50 + 18*float64(len(subtitle)) + 30
	bottom := top + rowHeight*float64(len(entries))
	d := newDrawing(chartWidth, bottom+34+16*float64(len(footer)), ch.title, aboutChart(ch, g, entries))
	d.text(chartMargin, 38, "h", ch.title)
	for i, line := range subtitle {
		d.text(chartMargin, 60+18*float64(i), "m", line)
	}
	ch.legendAt(d, c, entries, top-20)
	ch.rows(d, c, entries, top, bottom)
	for i, line := range footer {
		d.text(chartMargin, bottom+36+16*float64(i), "m s", line)
	}
	return d.bytes()
}

// rows draws a line for each entry: rank, name, language, value, and the chart's own mark.
func (ch *chart) rows(d *drawing, c *comparison, entries []*entry, top, bottom float64) {
	names, values, languages, least, most := 60.0, 40.0, 20.0, math.Inf(1), 0.0
	for _, e := range entries {
		names = max(names, textWidth(e.row.Peer)+16)
		languages = max(languages, textWidth(e.tag()))
		values = max(values, 1.07*textWidth(ch.value(e))) // bold is wider
		most = max(most, ch.most(e))
		least = min(least, spanStart(e, "p50"))
	}
	names, languages = min(names, 200), min(languages, 110)
	x0 := chartMargin + 26
	valueEnd := x0 + names + languages + 18 + values
	plot := linear(valueEnd+14, chartWidth-chartMargin-10, most)
	if ch.figure == "p99" {
		plot = logarithm(valueEnd+14, chartWidth-chartMargin-10, least, most)
	}
	for _, v := range plot.ticks {
		d.path("grid", fmt.Sprintf("M%s %sV%s", px(plot.at(v)), px(top), px(bottom)))
		d.text(plot.at(v), bottom+15, "m s c n", ch.label(v))
	}
	rank := 0
	for i, e := range entries {
		y := top + rowHeight*(float64(i)+0.5)
		class, text, anser := languageClass(e.row.Language), "", c.peers[e.peer].Anser
		if anser {
			class, text = "anser", "b at"
			d.rect(chartMargin-10, y-rowHeight/2+1, chartWidth-2*chartMargin+20, rowHeight-2, 5, "band")
		}
		if e.status == measured {
			rank++
			d.text(x0-8, y+4.5, "m r n", fmt.Sprint(rank))
		}
		name := e.row.Peer
		if anser {
			name = "◆ " + name
		}
		d.text(x0, y+4.5, text, shorten(name, names))
		d.text(x0+names+8, y+4.5, "m", shorten(e.tag(), languages))
		d.text(valueEnd, y+4.5, "r n "+text, ch.value(e))
		ch.draw(d, plot, e, class, y)
	}
}

// tag is what is written behind the name: the language, and the connections where each peer has
// its own.
func (e *entry) tag() string {
	text := languageName(e.row.Language)
	if e.group.shape.Conns == bestConns {
		text += ", " + connsWord(&e.row.Shape)
	}
	return text
}

// legendAt explains the colours and marks in one line.
func (ch *chart) legendAt(d *drawing, c *comparison, entries []*entry, y float64) {
	x := chartMargin
	item := func(text string, draw func(x float64)) {
		draw(x + 6)
		d.text(x+18, y+4.5, "s", text)
		x += 18 + textWidth(text) + 14
	}
	var seen []string
	for _, e := range entries {
		if c.peers[e.peer].Anser && !slices.Contains(seen, "◆ Anser") {
			seen = append(seen, "◆ Anser")
			item("◆ Anser", func(x float64) { d.rect(x-6, y-5, 12, 10, 2, "bar anser") })
		}
	}
	for _, language := range c.languages() {
		name := languageName(language)
		used := slices.ContainsFunc(entries, func(e *entry) bool { return e.row.Language == language && !c.peers[e.peer].Anser })
		if used && !slices.Contains(seen, name) {
			seen = append(seen, name)
			item(name, func(x float64) { d.rect(x-6, y-5, 12, 10, 2, "bar "+languageClass(language)) })
		}
	}
	x += 12
	for _, s := range ch.legend {
		item(s.text, func(x float64) {
			switch s.class {
			case "bar", "soft":
				d.rect(x-6, y-5, 12, 10, 2, s.class+" l-other")
			default:
				latencyMark(d, s.class, x, y, "l-other")
			}
		})
	}
}

// drawBar draws from one value to another. What is not a framework has an outline only.
func drawBar(d *drawing, a *axis, from, to, y float64, class string, s status) {
	if s == reference {
		class = strings.Replace(class, "bar", "open", 1)
	}
	d.rect(a.at(from), y-barHeight/2, a.at(to)-a.at(from), barHeight, 2, class)
}

// drawStack draws a first part and what is left of the whole.
func drawStack(d *drawing, a *axis, e *entry, first, whole, class string, y float64) {
	client, all := e.value(figureOf(first)), e.value(figureOf(whole))
	if math.IsNaN(client) || client > all {
		drawBar(d, a, 0, all, y, "bar "+class, e.status)
		return
	}
	drawBar(d, a, 0, client, y, "bar "+class, e.status)
	d.rect(a.at(client)+1, y-barHeight/2+0.5, a.at(all)-a.at(client)-1.5, barHeight-1, 2, "soft "+class)
}

func drawWhisker(d *drawing, a *axis, e *entry, key string, y float64) {
	if least, most, ok := e.span(figureOf(key)); ok {
		d.whisker(a.at(least), a.at(most), y, 4)
	}
}

// drawLatency draws the percentiles on a line, and the least and the most of p50 and p99.
func drawLatency(d *drawing, a *axis, e *entry, class string, y float64) {
	marks := []struct{ key, mark string }{{"p50", "dot"}, {"p90", "ring"}, {"p99", "diamond"}, {"p99.9", "hole"}}
	var xs []float64
	for _, m := range marks {
		if v := e.value(figureOf(m.key)); !math.IsNaN(v) {
			xs = append(xs, a.at(v))
		}
	}
	if len(xs) == 0 {
		return
	}
	d.path(class, fmt.Sprintf("M%s %sH%s", px(slices.Min(xs)), px(y), px(slices.Max(xs))))
	for _, key := range []string{"p50", "p99"} {
		drawWhisker(d, a, e, key, y)
	}
	for _, m := range marks {
		if v := e.value(figureOf(m.key)); !math.IsNaN(v) {
			latencyMark(d, m.mark, a.at(v), y, class)
		}
	}
}

// latencyMark draws one percentile; each has its own shape, so that the colour is not needed.
func latencyMark(d *drawing, mark string, x, y float64, class string) {
	switch mark {
	case "dot":
		d.circle(x, y, 4, class+" bar")
	case "ring":
		d.circle(x, y, 3.2, class+" hole")
	case "diamond":
		d.diamond(x, y, 5, class+" bar")
	case "hole":
		d.diamond(x, y, 4.2, class+" hole")
	}
}

// spanEnd is the most that the chart shows of an entry.
func spanEnd(e *entry, key string) float64 {
	v := e.value(figureOf(key))
	if _, most, ok := e.span(figureOf(key)); ok {
		v = max(v, most)
	}
	if math.IsNaN(v) {
		return 0
	}
	return v
}

func spanStart(e *entry, key string) float64 {
	v := e.value(figureOf(key))
	if least, _, ok := e.span(figureOf(key)); ok {
		v = min(v, least)
	}
	if math.IsNaN(v) {
		return math.Inf(1)
	}
	return v
}

func rangesText(c *comparison) string {
	if n := c.rounds(); n > 1 {
		return fmt.Sprintf("Median of %d rounds, with the least and the most", n)
	}
	return "One measurement"
}

// footerText says where it was measured, and what is not in the chart.
func footerText(c *comparison, g *group, f *figure) string {
	var parts []string
	for _, fact := range provenance(c) {
		switch fact.name {
		case "Measured", "Processor", "Kernel":
			parts = append(parts, fact.value)
		case "Commit":
			parts = append(parts, "commit "+fact.value)
		}
	}
	text := strings.Join(parts, "; ") + "."
	var bad, outlined, unmeasured []string
	for _, e := range g.entries {
		switch {
		case e.status == invalid:
			reason, _, more := strings.Cut(e.reason, ". ") // its first sentence will do here
			if more {
				reason += " …"
			}
			bad = append(bad, e.row.Peer+" ("+reason+")")
		case e.status == published:
		case math.IsNaN(e.value(f)):
			unmeasured = append(unmeasured, e.row.Peer)
		case e.status == reference:
			outlined = append(outlined, e.row.Peer)
		}
	}
	add := func(names []string, format string) {
		if len(names) > 0 {
			text += " " + fmt.Sprintf(format, strings.Join(names, ", "))
		}
	}
	if g.shape.Conns == bestConns {
		text += " The connections are behind the language: how many all callers share, or each for one for each caller."
	}
	add(outlined, "Without a rank, as it is not a framework: %s.")
	add(bad, "Not valid, so not shown: %s.")
	add(unmeasured, "Without this figure: %s.")
	return text
}

// aboutChart says in words what the chart shows.
func aboutChart(ch *chart, g *group, entries []*entry) string {
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = e.row.Peer + " " + ch.value(e)
	}
	return fmt.Sprintf("%s, %s: %s. Best first: %s.", ch.title, g.workload, g.label, strings.Join(lines, ", "))
}
