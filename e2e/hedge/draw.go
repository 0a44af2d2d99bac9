package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// The place of the plot in the drawing.
const (
	width, height         = 760, 360
	left, right, top, low = 70, 700, 70, 300
)

const style = `
	.bg { fill: #ffffff } text { fill: #1f2328; font-size: 13px } .h { font-size: 18px; font-weight: 650 } .m { fill: #57606a }
	.r { text-anchor: end } .c { text-anchor: middle } .grid { stroke: #d8dee4 } path { fill: none; stroke-width: 2.5 }
	.failover { stroke: #6e7781 } .backup { stroke: #bf6a02 } text.failover { stroke: none; fill: #57606a } text.backup { stroke: none; fill: #8a4b00; font-weight: 650 }
	@media (prefers-color-scheme: dark) {
		.bg { fill: #0d1117 } text { fill: #e6edf3 } .m { fill: #9da7b3 } .grid { stroke: #30363d }
		.failover { stroke: #9aa4af } .backup { stroke: #f0a848 } text.failover { fill: #9da7b3 } text.backup { fill: #f3b765 }
	}
`

// draw returns an SVG of the latencies by percentile. The axis of the percentiles stretches the
// upper end, that of the latencies is logarithmic.
func draw(o options, all ...*series) []byte {
	least, most := math.Inf(1), 0.0
	for _, s := range all {
		least, most = min(least, ms(s.at(0.01))), max(most, ms(s.at(0.999)))
	}
	floor := math.Pow(10, math.Floor(math.Log10(least)))
	y := func(v float64) float64 {
		return low - (low-top)*math.Log(max(v, floor)/floor)/math.Log(1.3*most/floor)
	}
	x := func(share float64) float64 { return left + (right-left)*-math.Log10(1-share)/3 }
	var b bytes.Buffer
	title := "Latency with and without second attempts"
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="t d" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif">`+"\n", width, height)
	fmt.Fprintf(&b, "<title id=\"t\">%s</title>\n<desc id=\"d\">%s</desc>\n<style>%s</style>\n", title, about(o, all), style)
	fmt.Fprintf(&b, `<rect class="bg" width="%d" height="%d" rx="10"/><text class="h" x="%d" y="34">%s</text>`+"\n", width, height, left, title)
	for _, v := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		if v < floor || v > 1.3*most {
			continue
		}
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="m r" x="%d" y="%.1f">%g ms</text>`+"\n", left, right, y(v), y(v), left-8, y(v)+4, v)
	}
	for _, share := range []float64{0, 0.5, 0.9, 0.95, 0.99, 0.999} {
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text class="m c" x="%.1f" y="%d">%g %%</text>`+"\n", x(share), x(share), top, low, x(share), low+20, 100*share)
	}
	fmt.Fprintf(&b, `<text class="m c" x="%d" y="%d">share of the calls that were answered within</text>`+"\n", (left+right)/2, low+44)
	for i, s := range all {
		var path strings.Builder
		for step := 0; step <= 300; step++ {
			share := 1 - math.Pow(10, -float64(step)/100)
			fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[step == 0], x(share), y(ms(s.at(share))))
		}
		fmt.Fprintf(&b, `<path class="%s" d="%s"/><text class="%s" x="%d" y="%d">%s: p99 %.1f ms</text>`+"\n",
			s.name, &path, s.name, left+190*i, top-14, s.name, ms(s.at(0.99)))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func about(o options, all []*series) string {
	text := fmt.Sprintf("%d instances that take %v, one of them %v in %.0f %% of its calls; balancer %s.", o.instances, o.usual, o.slow, 100*o.share, o.balancer.Name())
	for _, s := range all {
		text += fmt.Sprintf(" %s: p50 %.1f ms, p99 %.1f ms, p99.9 %.1f ms.", s.name, ms(s.at(0.5)), ms(s.at(0.99)), ms(s.at(0.999)))
	}
	return text
}
