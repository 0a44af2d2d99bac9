package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"github.com/anser-rpc/anser/arena/result"
)

// The parts of the page. They are put into one file, as a page that is mailed or kept with a
// release must not need others.
//
//go:embed page
var parts embed.FS

// The scripts share one scope, in this order; the last one starts them.
var (
	styles  = []string{"tokens.css", "layout.css", "chart.css", "table.css"}
	scripts = []string{
		"errors.js", "dom.js", "format.js", "state.js", "rows.js", "axis.js", "rowchart.js", "bars.js", "latency.js",
		"standing.js", "curves.js", "table.js", "codecs.js", "controls.js", "main.js",
	}
)

// pageView is what the template shows without the script.
type pageView struct {
	Policy    string
	Style     template.CSS
	Script    template.JS
	Data      *pageData
	Statement string
	Facts     []fact
	Command   string
	Settings  []settingsLine
	NotRun    []result.NotRun
	Notes     []string
	Headline  string // label of the group that the tables without script show
	Rows      []plainRow
	Durations string
	// CodecsCommit says that the codecs are of another commit.
	CodecsCommit string
}

// settingsLine is a peer with everything that was set.
type settingsLine struct {
	peer
	LanguageName string
}

// plainRow is a line of the table for readers without scripts.
type plainRow struct{ Peer, Language, Conns, Throughput, CPU, P50, P99, Memory, Remark string }

// pageOf returns the page. Its policy allows only what is written in it, by hash, and no loads.
func pageOf(c *comparison) ([]byte, error) {
	style, err := joined(styles)
	if err != nil {
		return nil, err
	}
	script, err := joined(scripts)
	if err != nil {
		return nil, err
	}
	script = "\"use strict\";\n(() => {\n" + script + "})();\n"
	t, err := template.ParseFS(parts, "page/page.html")
	if err != nil {
		return nil, err
	}
	v := &pageView{
		Policy: fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; base-uri 'none'; form-action 'none'",
			sourceHash(script), sourceHash(style)),
		// Both are files of this package.
		Style: template.CSS(style), Script: template.JS(script),
		Data: dataOf(c), Statement: statement(c), Facts: provenance(c), Command: shellLine(c.doc.Command),
		NotRun: c.doc.NotRun, Notes: c.notes, Durations: durations(c), CodecsCommit: codecsCommit(c.doc),
	}
	for _, p := range c.peers {
		v.Settings = append(v.Settings, settingsLine{*p, languageName(p.Language)})
	}
	if g := c.headline(); g != nil {
		v.Headline = g.workload + ": " + g.label
		for _, e := range g.sorted(figureOf("cpu")) {
			v.Rows = append(v.Rows, plainRowOf(e))
		}
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func joined(names []string) (string, error) {
	var b strings.Builder
	for _, name := range names {
		content, err := parts.ReadFile("page/" + name)
		if err != nil {
			return "", err
		}
		b.Write(content)
	}
	return b.String(), nil
}

// sourceHash is how a policy names a script or a style in the page.
func sourceHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func plainRowOf(e *entry) plainRow {
	r := plainRow{
		Peer: e.row.Peer, Language: languageName(e.row.Language), Conns: connsWord(&e.row.Shape),
		Throughput: e.ranged("throughput"), CPU: e.ranged("cpu"), P50: e.ranged("p50"), P99: e.ranged("p99"), Memory: e.text("memory"),
	}
	var remarks []string
	switch e.status {
	case invalid:
		remarks = append(remarks, "invalid: "+e.reason)
	case published:
		remarks = append(remarks, "published by its authors, not measured here: "+e.row.Published)
	}
	if disturbed(e.row) > 0 {
		remarks = append(remarks, "disturbed")
	}
	r.Remark = strings.Join(append(remarks, e.row.Marks...), "; ")
	return r
}

// durations says how long the measurements were.
func durations(c *comparison) string {
	var texts []string
	seen := make(map[string]bool)
	for _, e := range c.entries {
		text := strings.TrimSuffix(fmt.Sprintf("%.1f", e.row.Shape.Seconds), ".0") + " s"
		if e.status == published || e.row.Shape.Calls > 0 || seen[text] {
			continue
		}
		seen[text] = true
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
