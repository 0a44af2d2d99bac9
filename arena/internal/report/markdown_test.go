package report_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/result"
)

var update = flag.Bool("update", false, "write the golden files anew")

// small is the sample with few peers and shapes, one of each kind of row.
func small() *result.Document {
	doc := sample()
	var rows []result.Row
	for _, r := range doc.Rows {
		switch r.Peer {
		case "anser", "ceiling", "arpc-inline", "hprose", "motan", "drpc", "dubbo-go-triple", "brpc", "published-186":
		default:
			continue
		}
		if r.Workload == "add" && r.Shape.Fresh || r.Workload == "say" && r.Shape == (result.Shape{Callers: r.Shape.Callers, Conns: r.Shape.Conns, Payload: 581, Servers: 1, Clients: 1, Hosts: 1, Seconds: r.Shape.Seconds}) && r.Shape.Callers >= 1000 && r.Shape.Callers != 5000 {
			rows = append(rows, r)
		}
	}
	doc.Rows = rows
	return doc
}

func TestMarkdownIsGolden(t *testing.T) {
	text := read(t, written(t, small()), "results.md")
	golden := filepath.Join("testdata", "sample.md")
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, golden); text != want {
		t.Errorf("the tables differ from %s; go test -update writes it anew. They are now:\n%s", golden, text)
	}
}

// Every line of a table has the same width and the same number of cells, whatever is in them.
func TestMarkdownTablesAreAligned(t *testing.T) {
	for name, doc := range map[string]*result.Document{"sample": sample(), "hostile": hostileDocument()} {
		width, cells := 0, 0
		for line := range strings.Lines(read(t, written(t, doc), "results.md")) {
			if !strings.HasPrefix(line, "|") {
				width = 0
				continue
			}
			n := strings.Count(strings.ReplaceAll(strings.ReplaceAll(line, `\\`, ""), `\|`, ""), "|")
			if width == 0 {
				width, cells = len([]rune(line)), n
			}
			if len([]rune(line)) != width || n != cells {
				t.Fatalf("%s: a line is not like the first of its table: %s", name, line)
			}
		}
	}
}

func TestMarkdownEscapes(t *testing.T) {
	doc := hostileDocument()
	doc.Command = nil // it is shown in a fence, where nothing is markup
	text := read(t, written(t, doc), "results.md")
	for _, bad := range []string{"<script", "<img", "</style", "\n# head", "**_[x]"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in the tables", bad)
		}
	}
}

func TestMarkdownSaysWhereCodecsWereMeasured(t *testing.T) {
	doc := small()
	doc.Codecs, doc.CodecsCommit = []result.Codec{{Name: "raw"}}, "0123abc"
	if text := read(t, written(t, doc), "results.md"); !strings.Contains(text, " come with Anser. Measured on another commit than the rest: 0123abc.\n") {
		t.Errorf("the codecs' commit is not a sentence of its own:\n%s", text)
	}
}

// A row that is invalid, published or not of a framework has no rank.
func TestMarkdownRanksWhatWasMeasured(t *testing.T) {
	for line := range strings.Lines(read(t, written(t, sample()), "results.md")) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		rank := strings.TrimSpace(strings.Split(line, "|")[1])
		for _, peer := range []string{" ceiling", " hprose", " published-"} {
			if strings.Contains(line, peer) && strings.Contains("0123456789", rank[:min(1, len(rank))]) && rank != "" {
				if peer == " hprose" && !strings.Contains(line, "invalid") {
					continue // its rows of add are right
				}
				t.Errorf("has a rank: %s", line)
			}
		}
	}
}
