package main

import (
	"cmp"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// screen is a command of the tour in docs/observability.md, and what it prints there.
type screen struct {
	command string
	lines   []string
}

// tour reads the screens of the page.
func tour(t *testing.T) (list []screen) {
	t.Helper()
	text, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## A tour")
	section, _, found := strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("the page has no tour, or nothing after it")
	}
	for {
		_, rest, more := strings.Cut(section, "```\n$ anser ")
		if !more {
			return list
		}
		block, after, _ := strings.Cut(rest, "```")
		command, lines, _ := strings.Cut(block, "\n")
		s := screen{command: command}
		for line := range strings.Lines(lines) {
			if line = strings.TrimSpace(line); line != "" && line != "…" {
				s.lines = append(s.lines, line)
			}
		}
		list = append(list, s)
		section = after
	}
}

// shapes replace what differs between two runs, in this order.
var shapes = []struct {
	of *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ID"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?`), "TIME"},
	{regexp.MustCompile(`\d+\.\d+\.\d+\.\d+:\d+`), "ADDRESS"},
	{regexp.MustCompile(`█[█ ]*`), "BAR "},
	{regexp.MustCompile(`\b(front|posts|arith)-\d\b`), "INSTANCE"},
	{regexp.MustCompile(`(Posts|Arith)\.\w+`), "METHOD"}, // whichever is slow
	{regexp.MustCompile(`ADDRESS/(posts|arith)\b`), "ADDRESS/SERVICE"},
	{regexp.MustCompile(`\b[KMG]iB\b`), "BYTES"},
	{regexp.MustCompile(`\d[\d.,]*k?( ?(ns|µs|ms|s|m\d+s))?\b`), "N"},
	{regexp.MustCompile(`\s+`), " "},
}

func shapeOf(line string) string {
	for _, s := range shapes {
		line = s.of.ReplaceAllString(line, s.by)
	}
	return strings.TrimSpace(line)
}

// missing returns the lines of the screen whose shape is not in the output.
func (s *screen) missing(out string) (lines []string) {
	there := make(map[string]bool)
	for line := range strings.Lines(out) {
		there[shapeOf(line)] = true
	}
	for _, line := range s.lines {
		if !there[shapeOf(line)] {
			lines = append(lines, line+"\n    as "+shapeOf(line))
		}
	}
	return lines
}

var traceID = regexp.MustCompile(`trace ([0-9a-f]{32})`)

// The tour from an alert to the cause can be followed: against a demo, its commands print what the
// page shows, but for names, numbers and times.
func TestTour(t *testing.T) {
	t.Parallel()
	screens := tour(t)
	var commands []string
	for _, s := range screens {
		name, _, _ := strings.Cut(s.command, " ")
		commands = append(commands, name)
		if len(s.lines) == 0 {
			t.Errorf("anser %s prints nothing", s.command)
		}
	}
	if got := strings.Join(commands, " "); got != "top tail tail replay" {
		t.Fatalf("the tour has the commands %s", got)
	}
	tmp := t.TempDir()
	demo := start(t, tmp, "demo", "--listen", "127.0.0.1:0", "--serve", "127.0.0.1:0", "--every", "1s", "--steps", "slow")
	registry, record, page := "", "", ""
	for line := demo.line("try:"); ; line = demo.line("") {
		text, found := strings.CutPrefix(strings.TrimSpace(line), "try:  ")
		if !found {
			break
		}
		words := strings.Fields(text)
		for i, word := range words {
			switch {
			case word == "--registry":
				registry = words[i+1]
			case word == "replay":
				record = strings.TrimSuffix(words[i+1], "arith-1")
			}
		}
		if strings.HasPrefix(text, "http://") && strings.HasSuffix(text, "/") { // the console's comes first
			page = text
		}
	}
	if record == "" || page == "" || registry == "" {
		t.Fatalf("the demo does not say where its registry %q, its recordings %q and its page %q are", registry, record, page)
	}
	id := ""
	follow := func(s *screen) string {
		var args []string
		for word := range strings.FieldsSeq(s.command) {
			switch {
			case regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(word):
				word = cmp.Or(id, word)
			case strings.HasPrefix(word, "127.0.0.1:"):
				word = page
			case strings.Contains(word, "/calls/"):
				_, instance, _ := strings.Cut(word, "/calls/")
				word = record + instance
			}
			args = append(args, word)
		}
		p := start(t, t.TempDir(), append(args, "--registry", registry, "--timeout", "2m")...)
		out, code := p.wait()
		if code != 0 {
			t.Logf("anser %s: code %d, %s", s.command, code, p.errOut.String())
		}
		if found := traceID.FindStringSubmatch(out); found != nil {
			id = found[1]
		}
		return out
	}
	// What is slow, and so what a screen has, changes: a screen may need several looks.
	for at := range screens {
		s := &screens[at]
		var missing []string
		out := ""
		for deadline := time.Now().Add(2 * time.Minute); ; {
			if strings.HasPrefix(s.command, "tail --trace") {
				follow(&screens[at-1]) // another slow call
			}
			if out = follow(s); len(s.missing(out)) == 0 || time.Now().After(deadline) {
				missing = s.missing(out)
				break
			}
		}
		if len(missing) > 0 {
			t.Errorf("anser %s does not print\n%s\nbut\n%s", s.command, strings.Join(missing, "\n"), out)
		}
	}
	// The slow calls made the callers save a recording.
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(fetch(t, page+"flight/"), "1.trace"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("the page has no recording of a slow call")
			break
		}
	}
	if _, code := demo.signal(os.Interrupt); code != 0 {
		t.Errorf("exit code %d\n%s", code, demo.errOut.String())
	}
	expectEmpty(t, tmp)
}
