package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sample() *document {
	d := &document{Options: options{Loads: []float64{1, 10}, Deadline: 250}, Busy: true}
	for _, kind := range []string{"slots", "burn"} {
		for i, name := range []string{"one", "two <&>"} {
			d.Rows = append(d.Rows,
				row{Handler: kind, Peer: name, Load: 1, Offered: 1000, Goodput: 1000},
				row{Handler: kind, Peer: name, Load: 10, Offered: 10_000, Goodput: float64(900 * (1 - i)), Error: "over"})
		}
	}
	return d
}

func TestDraw(t *testing.T) {
	svg := draw(sample())
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	text := string(svg)
	for _, want := range []string{"prefers-color-scheme: dark", "slots, one: 100% at 1x, 90% at 10x", "two &lt;&amp;&gt;: 100% at 1x, 0% at 10x", "Other processes ran"} {
		if !strings.Contains(text, want) {
			t.Errorf("the drawing has no %q", want)
		}
	}
	if n := strings.Count(text, `class="line`); n != 4+2 {
		t.Errorf("%d lines, want one for each peer and handler and two in the legend", n)
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	sample().table(&out)
	if n := strings.Count(out.String(), " 90%"); n != 2 {
		t.Errorf("%d rows with 90 %%, want 2:\n%s", n, &out)
	}
	if !strings.Contains(out.String(), "repeat this on a quiet one") {
		t.Error("that the machine was busy is not said")
	}
}
