package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// peerPreamble follows where other frameworks were played too.
const peerPreamble = `Rows that other frameworks can run have a column for each of them: with the same faults,
requirements and ledger, on the same machine, one framework after another. Unless a rate was given,
the load is a share of the capacity of each framework. Their settings are chosen for the rows, and
defined in ` + "`e2e/faults/peergrpc.go`" + ` and ` + "`peerrpcx.go`" + `; they use no registry, but a list of the
servers' addresses. They do not make the promises of Anser: for them, *broken* only means that a
requirement was missed. An error counts as not sent only if it proves this, otherwise as unknown.
No error of gRPC proves it. The errors of rpcx that prove it are: the connection failed, the server
was skipped because of that, or there is no server. *Not run*: the row did not run to its end; if
the cause was a crash of a process of the framework, it is *broken*. –: the row was not run, or
needs a registry or another feature that only Anser has here.

`

// ours is the name of the column of Anser.
const ours = "anser"

// played is what a row showed with Anser and with the others, in that order. It is not empty.
type played []*result

// groups collects the results of the same row, for adjacent columns.
func (d *document) groups() (all []played) {
	for _, r := range d.Rows {
		if n := len(all); n > 0 && all[n-1][0].Row == r.Row {
			all[n-1] = append(all[n-1], r)
		} else {
			all = append(all, played{r})
		}
	}
	return all
}

// peers returns the names of the other frameworks that were played.
func (d *document) peers() []string {
	names := make(map[string]bool)
	for _, r := range d.Rows {
		if r.Peer != "" {
			names[r.Peer] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// markdown returns the report.
func (d *document) markdown() []byte {
	var b bytes.Buffer
	b.WriteString(preamble)
	groups, peers := d.groups(), d.peers()
	columns := append([]string{""}, peers...)
	if len(peers) == 0 {
		b.WriteString("| fault | requirement | load | |\n|---|---|---|---|\n")
	} else {
		b.WriteString(peerPreamble)
		fmt.Fprintf(&b, "| fault | requirement | load | %s | %s |\n|---|---|---|%s\n", ours, strings.Join(peers, " | "), strings.Repeat("---|", len(columns)))
	}
	for _, g := range groups {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |", cell(g[0].Fault), g[0].Row, cell(g[0].Bar), g[0].load())
		for _, name := range columns {
			state := "–"
			if i := slices.IndexFunc(g, func(r *result) bool { return r.Peer == name }); i >= 0 {
				state = g[i].State
			}
			if name == "" {
				state = "**" + state + "**"
			}
			fmt.Fprintf(&b, " %s |", state)
		}
		b.WriteString("\n")
	}
	for _, g := range groups {
		g.write(&b)
	}
	return b.Bytes()
}

// write writes the section of a row.
func (g played) write(b *bytes.Buffer) {
	var states []string
	var ran played
	for _, r := range g {
		states = append(states, r.sentence())
		if len(r.Figures) > 0 {
			ran = append(ran, r)
		}
	}
	fmt.Fprintf(b, "\n## %s\n\n%s: %s.\n\n", g[0].Row, capital(g[0].Fault), strings.Join(states, "; "))
	if len(ran) == 0 {
		return
	}
	if len(ran) == 1 && ran[0].Peer == "" {
		b.WriteString("| | | requirement |\n|---|---|---|\n")
		for _, f := range ran[0].Figures {
			verdict := ""
			if f.Bar != "" {
				verdict = f.Bar + ": **" + f.word() + "**"
			}
			fmt.Fprintf(b, "| %s | %s | %s |\n", cell(f.Name), f.text(), cell(verdict))
		}
	} else {
		ran.table(b)
	}
	for _, r := range ran {
		if len(r.Errors) > 0 && r.Peer != "" {
			fmt.Fprintf(b, "\nErrors with %s:\n", r.Peer)
		}
		for _, e := range r.Errors {
			fmt.Fprintf(b, "\n- `%s`", strings.ReplaceAll(e, "`", "'"))
		}
		if len(r.Errors) > 0 {
			b.WriteString("\n")
		}
	}
	for _, r := range ran {
		b.WriteString("\n")
		if r.Peer != "" {
			b.WriteString(r.Peer + ": ")
		}
		b.WriteString(r.where())
	}
}

// table writes the figures of several frameworks next to each other. Limits that depend on
// measurements are shown with the figure if they differ from the first.
func (g played) table(b *bytes.Buffer) {
	b.WriteString("| |")
	for _, r := range g {
		name := r.Peer
		if name == "" {
			name = ours
		}
		fmt.Fprintf(b, " %s |", name)
	}
	fmt.Fprintf(b, " requirement |\n|---|%s---|\n", strings.Repeat("---|", len(g)))
	for _, name := range g.names() {
		fmt.Fprintf(b, "| %s |", cell(name))
		bar := ""
		for _, r := range g {
			text := ""
			if f := r.find(name); f != nil {
				text = f.text()
				if bar == "" {
					bar = f.Bar
				}
				if f.Bar != bar {
					text += ", " + f.Bar
				}
				if f.Bar != "" {
					text += ": **" + f.word() + "**"
				}
			}
			fmt.Fprintf(b, " %s |", cell(text))
		}
		fmt.Fprintf(b, " %s |\n", cell(bar))
	}
}

// names returns the names of all figures. A figure missing in the first result comes after its
// predecessor in its own.
func (g played) names() (all []string) {
	for _, r := range g {
		at := 0
		for _, f := range r.Figures {
			i := slices.Index(all, f.Name)
			if i < 0 {
				i = at
				all = slices.Insert(all, i, f.Name)
			}
			at = i + 1
		}
	}
	return all
}

// find returns the figure of that name, or nil.
func (r *result) find(name string) *figure {
	for i := range r.Figures {
		if r.Figures[i].Name == name {
			return &r.Figures[i]
		}
	}
	return nil
}

// sentence says how the row ended.
func (r *result) sentence() string {
	text := "**" + r.State + "**"
	if r.Peer != "" {
		text = "with " + r.Peer + " " + text
	}
	if first, _, _ := strings.Cut(r.Why, "\n"); first != "" {
		text += ", " + first
	}
	return text
}
