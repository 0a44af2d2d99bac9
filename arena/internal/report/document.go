package report

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/arena/result"
)

// statement says in a sentence what the document is.
func statement(c *comparison) string {
	peers, languages := c.here()
	rounds := "one measurement"
	if n := c.rounds(); n > 1 {
		rounds = fmt.Sprintf("the median of %d rounds", n)
	}
	return fmt.Sprintf("%s in %s answered the same calls on the same machine, in turns; every figure is %s, taken from outside of both processes.",
		counted(peers, "peer"), counted(languages, "language"), rounds)
}

// fact is a line about the run.
type fact struct{ name, value string }

// Name returns what it is about, for the page's template.
func (f fact) Name() string { return f.name }

// Value returns what is said, for the page's template.
func (f fact) Value() string { return f.value }

// provenance says where, when and with what it ran.
func provenance(c *comparison) []fact {
	doc := c.doc
	var facts []fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, value})
		}
	}
	if !doc.Began.IsZero() {
		when := doc.Began.UTC().Format("2 January 2006, 15:04")
		if doc.Ended.After(doc.Began) {
			when += " to "
			if doc.Ended.UTC().YearDay() != doc.Began.UTC().YearDay() {
				when += doc.Ended.UTC().Format("2 January, ")
			}
			when += doc.Ended.UTC().Format("15:04")
		}
		add("Measured", when+" UTC")
	}
	add("Commit", doc.Commit)
	add("Connections", connections(c))
	m := &doc.Machine
	cpu := m.CPU
	if m.Cores > 0 {
		cpu = strings.TrimPrefix(cpu+", "+counted(m.Cores, "core"), ", ")
	}
	add("Processor", cpu)
	if m.MemoryMiB > 0 {
		add("Memory", thousands(float64(m.MemoryMiB), 0)+" MiB")
	}
	add("System", m.OS)
	add("Kernel", m.Kernel)
	for _, tool := range slices.Sorted(maps.Keys(m.Tools)) {
		add(tool, m.Tools[tool])
	}
	return facts
}

// connections says whether each peer had its own connections, so that a reader of a run from
// before this choice, or without it, does not take its tables for what the peers can do.
func connections(c *comparison) string {
	best, rows := false, false
	for _, e := range c.entries {
		best = best || e.row.Best
		rows = rows || e.status != published
	}
	switch {
	case best:
		return "each peer's own best where a table says so"
	case rows:
		return "the same for all peers, as each table says; another number of them may be better for a peer"
	}
	return ""
}

// shellLine prints a command so that it can be pasted into a shell.
func shellLine(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = shellWord(arg)
	}
	return strings.Join(quoted, " ")
}

func shellWord(arg string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./,:=+@%", r)
	}
	if arg != "" && strings.IndexFunc(arg, func(r rune) bool { return !safe(r) }) < 0 {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// codecsCommit says that the codecs were measured on another commit than the rows, where they
// were.
func codecsCommit(doc *result.Document) string {
	if doc.CodecsCommit == "" {
		return ""
	}
	return "Measured on another commit than the rest: " + doc.CodecsCommit + "."
}

// sortedCodecs returns the codecs, the fastest round trip first.
func sortedCodecs(codecs []result.Codec) []result.Codec {
	sorted := slices.Clone(codecs)
	slices.SortStableFunc(sorted, func(a, b result.Codec) int {
		return cmp.Or(cmp.Compare(a.EncodeNS+a.DecodeNS, b.EncodeNS+b.DecodeNS), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

// address returns s if it is nothing but an address of the web that may be linked to, and nothing
// otherwise.
func address(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.ContainsAny(s, " <>\"'`\\|\n\r\t") {
		return ""
	}
	return s
}
