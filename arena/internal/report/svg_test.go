package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/result"
)

// texts parses an SVG file strictly and returns what its text elements say.
func texts(t *testing.T, name, svg string) []string {
	t.Helper()
	var found []string
	inside := false
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("%s is not well-formed: %v", name, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inside = token.Name.Local == "text"
			switch token.Name.Local {
			case "script", "image", "foreignObject", "a", "use":
				t.Errorf("%s has an element %s", name, token.Name.Local)
			}
			for _, attribute := range token.Attr {
				if strings.HasPrefix(strings.ToLower(attribute.Name.Local), "on") || attribute.Name.Local == "href" {
					t.Errorf("%s has an attribute %s", name, attribute.Name.Local)
				}
			}
		case xml.CharData:
			if inside {
				found = append(found, string(token))
			}
		case xml.EndElement:
			inside = false
		}
	}
}

func TestChartsAreWellFormed(t *testing.T) {
	for kind, doc := range map[string]*result.Document{"sample": sample(), "hostile": hostileDocument()} {
		folder := written(t, doc)
		for _, name := range chartNames {
			svg := read(t, folder, name)
			if len(texts(t, kind+" "+name, svg)) < 60 {
				t.Errorf("%s %s has too little text for its rows", kind, name)
			}
			if strings.Contains(svg, "url(") || strings.Contains(svg, "@import") {
				t.Errorf("%s %s could load something", kind, name)
			}
			if !strings.Contains(svg, "prefers-color-scheme: dark") || !strings.Contains(svg, "<title") || !strings.Contains(svg, "<desc") {
				t.Errorf("%s %s has no dark colours, title or description", kind, name)
			}
		}
	}
}

// The charts show the shape that represents the run, best first, with the measured rows only.
func TestChartsShowTheHeadline(t *testing.T) {
	folder := written(t, sample())
	for name, first := range map[string]string{"throughput.svg": "ceiling", "cpu.svg": "ceiling", "latency.svg": "ceiling", "memory.svg": "brpc"} {
		all := texts(t, name, read(t, folder, name))
		joined := strings.Join(all, " ") // sentences are broken into lines
		if !strings.Contains(joined, "say: 1,000 callers, 2 connections.") {
			t.Errorf("%s shows another shape", name)
		}
		position := func(peer string) int {
			for i, text := range all {
				if strings.TrimPrefix(text, "◆ ") == peer {
					return i
				}
			}
			return -1
		}
		for _, peer := range []string{"anser", "arpc-inline", "grpc-java", "dubbo-go-triple"} {
			if position(peer) < position(first) {
				t.Errorf("%s: %s stands before %s, or is not there", name, peer, first)
			}
		}
		if position("hprose") >= 0 || position("published-186") >= 0 {
			t.Errorf("%s has a row that was not measured", name)
		}
		if !strings.Contains(joined, "hprose (12 wrong replies)") {
			t.Errorf("%s does not say what is not shown", name)
		}
	}
}
