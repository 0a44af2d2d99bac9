package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/anser-rpc/anser/arena/result"
)

// markdownOf returns a table for each workload and shape, sorted by CPU per call, with footnotes.
// Common properties come first.
func markdownOf(c *comparison) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n", markdownText(statement(c)))
	for _, line := range provenance(c) {
		fmt.Fprintf(&b, "- %s: %s\n", markdownText(line.name), markdownText(line.value))
	}
	if len(c.doc.Command) > 0 {
		line := shellLine(c.doc.Command)
		fence := "```"
		for strings.Contains(line, fence) {
			fence += "`"
		}
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n", fence, line, fence)
	}
	b.WriteString("\nRows are sorted by CPU per call, client and server together. In brackets are the least and the most of the rounds. " +
		"Connections are the number that all callers share, or \"each\" where each caller has its own.\n")
	for _, g := range c.groups {
		fmt.Fprintf(&b, "\n### %s: %s\n\n", markdownText(g.workload), markdownText(g.label))
		groupTable(&b, c, g)
	}
	notRunList(&b, c.doc.NotRun)
	codecTable(&b, c.doc)
	return b.Bytes()
}

// footnotes numbers the remarks under one table.
type footnotes struct{ texts []string }

// markdownSource is text that names where figures come from. An address stays one that can be
// followed.
func markdownSource(s string) string {
	if address(s) != "" {
		return "<" + s + ">"
	}
	return markdownText(s)
}

// mark returns the superscript numbers of texts.
func (f *footnotes) mark(texts []string) string {
	var numbers []string
	for _, text := range texts {
		i := 0
		for i < len(f.texts) && f.texts[i] != text {
			i++
		}
		if i == len(f.texts) {
			f.texts = append(f.texts, text)
		}
		numbers = append(numbers, fmt.Sprint(i+1))
	}
	if len(numbers) == 0 {
		return ""
	}
	return "<sup>" + strings.Join(numbers, ",") + "</sup>"
}

// remarks are what a reader must know of a row, in Markdown.
func (e *entry) remarks() []string {
	var texts []string
	if e.status == invalid {
		texts = append(texts, "Invalid: "+markdownText(e.reason)+".")
	}
	if e.status == published {
		texts = append(texts, "Published by its authors, not measured here: "+markdownSource(e.row.Published))
	}
	for _, mark := range e.row.Marks {
		texts = append(texts, markdownText(mark))
	}
	if n := disturbed(e.row); n > 0 {
		texts = append(texts, fmt.Sprintf("Disturbed: in %d of %s other processes took more than 5 %% of the machine.", n, counted(len(e.row.Rounds), "round")))
	}
	if e.status != invalid && e.row.Errors > 0 {
		text := counted(int(e.row.Errors), "error") + " in the median round"
		if first := firstError(e.row); first != "" {
			text += ", the first: " + markdownText(first)
		}
		texts = append(texts, text)
	}
	return texts
}

func groupTable(b *bytes.Buffer, c *comparison, g *group) {
	t := markdownTable{
		head:  []string{"#", "peer", "language", "connections", "calls/s", "CPU µs a call", "client + server", "p50 µs", "p99 µs", "p99.9 µs", "MiB"},
		right: []bool{true, false, false, true, true, true, true, true, true, true, true},
	}
	var notes footnotes
	rank := 0
	for _, e := range g.sorted(figureOf("cpu")) {
		name := markdownText(e.row.Peer)
		if c.peers[e.peer].Anser {
			name = "**" + name + "**"
		}
		name += notes.mark(e.remarks())
		row := []string{"", name, markdownText(languageName(e.row.Language)), connsWord(&e.row.Shape)}
		if e.status == invalid {
			t.rows = append(t.rows, append(row, "invalid"))
			continue
		}
		if e.status == measured && !math.IsNaN(e.value(figureOf("cpu"))) {
			rank++
			row[0] = fmt.Sprint(rank)
		}
		t.rows = append(t.rows, append(row,
			e.ranged("throughput"), e.ranged("cpu"), e.parts(),
			e.ranged("p50"), e.ranged("p99"), e.text("p99.9"), e.text("memory")))
	}
	t.write(b)
	if len(notes.texts) > 0 {
		b.WriteByte('\n')
	}
	for i, text := range notes.texts {
		fmt.Fprintf(b, "%d. %s\n", i+1, text)
	}
}

// text prints a figure, or a dash where it is not known.
func (e *entry) text(key string) string {
	f := figureOf(key)
	v := e.value(f)
	if math.IsNaN(v) {
		return "–"
	}
	return thousands(v, f.Digits)
}

// parts prints the CPU of client and server.
func (e *entry) parts() string {
	client, server := e.text("client-cpu"), e.text("server-cpu")
	if client == "–" && server == "–" {
		return client
	}
	return client + " + " + server
}

// ranged prints a figure with the least and the most of the rounds.
func (e *entry) ranged(key string) string {
	f := figureOf(key)
	text := e.text(key)
	least, most, ok := e.span(f)
	from, to := thousands(least, f.Digits), thousands(most, f.Digits)
	if !ok || from == to {
		return text
	}
	return text + " (" + from + " – " + to + ")"
}

func notRunList(b *bytes.Buffer, peers []result.NotRun) {
	if len(peers) == 0 {
		return
	}
	b.WriteString("\n### Not run\n\n")
	for _, p := range peers {
		fmt.Fprintf(b, "- %s: %s\n", markdownText(p.Peer), markdownText(p.Reason))
	}
}

func codecTable(b *bytes.Buffer, doc *result.Document) {
	if len(doc.Codecs) == 0 {
		return
	}
	note := "The data of the 581-byte message. Those in bold come with Anser. " + codecsCommit(doc)
	fmt.Fprintf(b, "\n### Codecs\n\n%s\n\n", markdownText(note))
	t := markdownTable{
		head:  []string{"codec", "library", "language", "encode ns", "decode ns", "bytes", "encode allocs", "decode allocs"},
		right: []bool{false, false, false, true, true, true, true, true},
	}
	for _, codec := range sortedCodecs(doc.Codecs) {
		name := markdownText(codec.Name)
		if codec.Anser {
			name = "**" + name + "**"
		}
		t.rows = append(t.rows, []string{
			name, markdownText(codec.Library), markdownText(languageName(codec.Language)),
			thousands(codec.EncodeNS, 0), thousands(codec.DecodeNS, 0), thousands(float64(codec.Bytes), 0),
			thousands(float64(codec.EncodeAllocs), 0), thousands(float64(codec.DecodeAllocs), 0),
		})
	}
	t.write(b)
}

// markdownTable is a table whose source is aligned too. A row may be shorter than the head.
type markdownTable struct {
	head  []string
	right []bool
	rows  [][]string
}

func (t *markdownTable) write(b *bytes.Buffer) {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	rule := make([]string, len(t.head))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
		if t.right[i] {
			rule[i] = rule[i][1:] + ":"
		}
	}
	t.line(b, t.head, widths)
	t.line(b, rule, widths)
	for _, row := range t.rows {
		t.line(b, row, widths)
	}
}

func (t *markdownTable) line(b *bytes.Buffer, cells []string, widths []int) {
	for i, width := range widths {
		cell := ""
		if i < len(cells) {
			cell = cells[i]
		}
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
		if t.right[i] {
			b.WriteString("| " + pad + cell + " ")
		} else {
			b.WriteString("| " + cell + pad + " ")
		}
	}
	b.WriteString("|\n")
}

// markdownEscapes are the characters that would mean something in a line or a cell.
var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`, "~", `\~`, "#", `\#`,
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "\r\n", " ", "\n", " ", "\r", " ", "\t", " ",
)

// markdownText makes text that comes from elsewhere mean only itself.
func markdownText(s string) string { return strings.TrimSpace(markdownEscapes.Replace(s)) }
