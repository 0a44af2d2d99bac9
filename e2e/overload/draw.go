package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// The drawing has a panel for each handler, side by side.
const (
	panelWidth  = 430
	panelHeight = 300
	left        = 56
	top         = 70
	gap         = 40
)

const style = `<style>
	.bg { fill: #ffffff } text { fill: #1f2328; font-size: 13px } .h { font-size: 17px; font-weight: 650 } .s { font-size: 12px; fill: #57606a }
	.grid { stroke: #d8dee4; fill: none } .line { fill: none; stroke-width: 2.5 } .bar { stroke: #57606a; stroke-dasharray: 5 4 }
	.p0 { stroke: #bf6a02 } .p1 { stroke: #bf6a02; stroke-dasharray: 6 4 } .p2 { stroke: #2f72c4 } .p3 { stroke: #2b7d6f } .p4 { stroke: #9a4a8c }
	@media (prefers-color-scheme: dark) {
		.bg { fill: #0d1117 } text { fill: #e6edf3 } .s { fill: #9da7b3 } .grid { stroke: #30363d } .bar { stroke: #9da7b3 }
		.p0, .p1 { stroke: #e3a04b } .p2 { stroke: #6cb0ff } .p3 { stroke: #63c7b2 } .p4 { stroke: #d58ac6 }
	}
</style>
`

// draw returns an SVG of the goodput over the load, as a share of what saturates the server.
func draw(d *document) []byte {
	var kinds, names []string
	for _, r := range d.Rows {
		if !slices.Contains(kinds, r.Handler) {
			kinds = append(kinds, r.Handler)
		}
		if !slices.Contains(names, r.Peer) {
			names = append(names, r.Peer)
		}
	}
	var b bytes.Buffer
	width := max(left+len(kinds)*(panelWidth+gap), 640)
	height := top + panelHeight + 90
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="t d" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif">`+"\n", width, height)
	fmt.Fprintf(&b, "<title id=\"t\">Goodput under overload</title>\n<desc id=\"d\">%s</desc>\n%s", html.EscapeString(d.describe(kinds, names)), style)
	fmt.Fprintf(&b, `<rect class="bg" width="%d" height="%d"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text class="h" x="%d" y="26">Replies within %d ms, in %% of the peer's best, over the load</text>`+"\n", left, d.Options.Deadline)
	if d.Busy {
		fmt.Fprintf(&b, `<text class="s" x="%d" y="46">Other processes ran on this machine during the measurement.</text>`+"\n", left)
	}
	for i, kind := range kinds {
		d.panel(&b, left+i*(panelWidth+gap), kind, names)
	}
	x := left
	for i, name := range names {
		y := top + panelHeight + 66
		fmt.Fprintf(&b, `<path class="line p%d" d="M%d %dh28"/><text x="%d" y="%d">%s</text>`+"\n", i%5, x, y-4, x+34, y, html.EscapeString(name))
		x += 60 + 8*len(name)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (d *document) describe(kinds, names []string) string {
	var parts []string
	for _, kind := range kinds {
		for _, name := range names {
			var points []string
			for _, r := range d.Rows {
				if r.Handler == kind && r.Peer == name {
					points = append(points, fmt.Sprintf("%.0f%% at %gx", 100*r.Goodput/max(d.peak(kind, name), 1), r.Load))
				}
			}
			parts = append(parts, kind+", "+name+": "+strings.Join(points, ", "))
		}
	}
	return strings.Join(parts, ". ") + "."
}

// panel draws the lines of one handler. The axis of the load is logarithmic.
func (d *document) panel(b *bytes.Buffer, x0 int, kind string, names []string) {
	low, high := slices.Min(d.Options.Loads), slices.Max(d.Options.Loads)
	place := func(load float64) float64 {
		if low == high {
			return float64(x0)
		}
		return float64(x0) + panelWidth*math.Log(load/low)/math.Log(high/low)
	}
	rise := func(share float64) float64 { return top + panelHeight*(1-share/1.1) }
	fmt.Fprintf(b, `<text x="%d" y="%d">handler: %s</text>`+"\n", x0, top-6, html.EscapeString(kind))
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fh%d"/><text class="s" text-anchor="end" x="%d" y="%.1f">%.0f</text>`+"\n", x0, rise(share), panelWidth, x0-8, rise(share)+4, 100*share)
	}
	fmt.Fprintf(b, `<path class="bar" d="M%d %.1fh%d"/>`+"\n", x0, rise(0.9), panelWidth)
	for _, load := range d.Options.Loads {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %dv%d"/><text class="s" text-anchor="middle" x="%.1f" y="%d">%gx</text>`+"\n", place(load), top, panelHeight, place(load), top+panelHeight+20, load)
	}
	for i, name := range names {
		var path strings.Builder
		for _, r := range d.Rows {
			if r.Handler == kind && r.Peer == name {
				command := "L"
				if path.Len() == 0 {
					command = "M"
				}
				fmt.Fprintf(&path, "%s%.1f %.1f", command, place(r.Load), rise(r.Goodput/max(d.peak(kind, name), 1)))
			}
		}
		fmt.Fprintf(b, `<path class="line p%d" d="%s"/>`+"\n", i%5, path.String())
	}
}
