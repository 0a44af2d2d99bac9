package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// drawing is an SVG file while it is written. Its colours follow the reader's light or dark
// setting, and its text stays text.
type drawing struct {
	b             bytes.Buffer
	width, height float64
}

// drawingStyle has no variables, so that renderers outside of browsers understand it.
const drawingStyle = `
	.bg { fill: #ffffff } text { fill: #1f2328; font-size: 13px } .h { font-size: 20px; font-weight: 650 }
	.m { fill: #57606a } .s { font-size: 12px } .b { font-weight: 650 } .n { font-variant-numeric: tabular-nums }
	.r { text-anchor: end } .c { text-anchor: middle } .bad { fill: #a40e26 }
	.grid { stroke: #d8dee4; fill: none } .whisker { stroke: #1f2328; stroke-width: 1.25; fill: none } .band { fill: #fff4e5 }
	.l-go { fill: #2f72c4; stroke: #2f72c4 } .l-java { fill: #9a4a8c; stroke: #9a4a8c } .l-cpp { fill: #2b7d6f; stroke: #2b7d6f }
	.l-other { fill: #6e7781; stroke: #6e7781 } .anser { fill: #bf6a02; stroke: #bf6a02 } text.at { fill: #8a4b00; stroke: none }
	.bar { stroke: none } .soft { fill-opacity: .22 } .open { fill: none; stroke-dasharray: 4 3 } .hole { fill: #ffffff; stroke-width: 1.75 }
	@media (prefers-color-scheme: dark) {
		.bg { fill: #0d1117 } text { fill: #e6edf3 } .m { fill: #9da7b3 } .bad { fill: #ff8d8a }
		.grid { stroke: #30363d } .whisker { stroke: #e6edf3 } .band { fill: #2d2113 }
		.l-go { fill: #6cb0ff; stroke: #6cb0ff } .l-java { fill: #dd92d0; stroke: #dd92d0 } .l-cpp { fill: #5cc4b2; stroke: #5cc4b2 }
		.l-other { fill: #9aa4af; stroke: #9aa4af } .anser { fill: #f0a848; stroke: #f0a848 } text.at { fill: #f3b765 }
		.bar { stroke: none } .open { fill: none } .hole { fill: #0d1117 }
	}
`

// newDrawing begins a file whose title and description, in title and about, are for readers
// without the image.
func newDrawing(width, height float64, title, about string) *drawing {
	d := &drawing{width: width, height: height}
	fmt.Fprintf(&d.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-labelledby="t d" font-family="ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif">`+"\n",
		px(width), px(height), px(width), px(height))
	fmt.Fprintf(&d.b, "<title id=\"t\">%s</title>\n<desc id=\"d\">%s</desc>\n<style>%s</style>\n", xmlText(title), xmlText(about), drawingStyle)
	fmt.Fprintf(&d.b, `<rect class="bg" width="%s" height="%s" rx="10"/>`+"\n", px(width), px(height))
	return d
}

func (d *drawing) bytes() []byte {
	return append(bytes.Clone(d.b.Bytes()), "</svg>\n"...)
}

// text writes at the base line y.
func (d *drawing) text(x, y float64, class, text string) {
	fmt.Fprintf(&d.b, `<text x="%s" y="%s"%s>%s</text>`+"\n", px(x), px(y), classOf(class), xmlText(text))
}

func (d *drawing) rect(x, y, width, height, radius float64, class string) {
	fmt.Fprintf(&d.b, `<rect x="%s" y="%s" width="%s" height="%s" rx="%s"%s/>`+"\n", px(x), px(y), px(max(width, 0)), px(height), px(radius), classOf(class))
}

func (d *drawing) path(class, commands string) {
	fmt.Fprintf(&d.b, `<path d="%s"%s/>`+"\n", commands, classOf(class))
}

// whisker spans from x1 to x2 with an end at each.
func (d *drawing) whisker(x1, x2, y, half float64) {
	d.path("whisker", fmt.Sprintf("M%s %sH%sM%s %sv%sM%s %sv%s",
		px(x1), px(y), px(x2), px(x1), px(y-half), px(2*half), px(x2), px(y-half), px(2*half)))
}

func (d *drawing) circle(x, y, r float64, class string) {
	fmt.Fprintf(&d.b, `<circle cx="%s" cy="%s" r="%s"%s/>`+"\n", px(x), px(y), px(r), classOf(class))
}

// diamond draws a rotated square around x, y.
func (d *drawing) diamond(x, y, r float64, class string) {
	d.path(class, fmt.Sprintf("M%s %sl%s %sl%s %sl%s %sz", px(x), px(y-r), px(r), px(r), px(-r), px(r), px(-r), px(-r)))
}

func classOf(class string) string {
	if class == "" {
		return ""
	}
	return ` class="` + xmlText(class) + `"`
}

func px(v float64) string {
	return strconv.FormatFloat(float64(int64(v*10+copysign(0.5, v)))/10, 'f', -1, 64)
}

func copysign(size, sign float64) float64 {
	if sign < 0 {
		return -size
	}
	return size
}

func xmlText(s string) string {
	var b strings.Builder
	// What XML cannot hold at all becomes the replacement character; a Builder does not fail.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// textWidth estimates the width of text of 13 pixels in the fonts that systems have, rather too
// wide than too narrow: there is no font to ask.
func textWidth(s string) float64 {
	width := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("iljtfr.,:;'|!()[] ", r):
			width += 4.6
		case strings.ContainsRune("mwMW", r):
			width += 11.2
		case r >= 0x1100:
			width += 13.5
		case unicode.IsUpper(r):
			width += 9
		default:
			width += 7.6
		}
	}
	return width
}

// shorten cuts s to a width, with an ellipsis.
func shorten(s string, width float64) string {
	if textWidth(s) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && textWidth(string(runes))+9 > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// wrap breaks a sentence into lines of a width.
func wrap(s string, width float64) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = word
		case textWidth(line+" "+word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
