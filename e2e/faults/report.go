package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// document is what --json prints and --into keeps.
type document struct {
	Rows []*result `json:"rows"`
}

// text returns the value with its unit.
func (f *figure) text() string {
	if f.Value < 0 && f.Unit == "s" {
		return "never"
	}
	digits := 0
	if f.Unit != "" && f.Value != float64(int64(f.Value)) && f.Value < 1000 {
		digits = 2
	}
	text := group(strconv.FormatFloat(f.Value, 'f', digits, 64))
	if f.Unit != "" {
		text += " " + f.Unit
	}
	return text
}

// group puts commas between the thousands.
func group(text string) string {
	whole, rest, dot := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		return whole + "." + rest
	}
	return whole
}

// verdict returns whether the limit was met.
func (f *figure) verdict() string {
	switch {
	case f.Bar == "":
		return ""
	case f.Held:
		return "held: " + f.Bar
	case f.Promise:
		return "BROKEN: " + f.Bar
	default:
		return "LOST: " + f.Bar
	}
}

// writeInto puts a result into the file, and writes the report next to it.
func writeInto(file string, r *result) error {
	var d document
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &d); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if d.Rows == nil {
			return fmt.Errorf("%s: %w", file, errNoRows)
		}
	}
	i := slices.IndexFunc(d.Rows, func(old *result) bool { return old.Row == r.Row && old.Peer == r.Peer })
	if i < 0 {
		d.Rows = append(d.Rows, r)
	} else {
		d.Rows[i] = r
	}
	d.sort()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return err
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(file, filepath.Ext(file))+".md", d.markdown(), 0o644)
}

// sort puts the rows into the order in which they are played.
func (d *document) sort() {
	place := make(map[string]int)
	for i, r := range rows() {
		place[r.name] = i + 1
	}
	slices.SortStableFunc(d.Rows, func(a, b *result) int {
		return cmp.Or(place[a.Row]-place[b.Row], strings.Compare(a.Peer, b.Peer))
	})
}

const preamble = `# Faults survived

` + "`go run ./e2e/faults`" + ` writes this page. A registry (etcd), three servers and 64 clients run as processes. The registry and each server
have a host of their own, and the clients share one: hosts are network namespaces. Half of the calls are idempotent. There is
a phase before the fault, one with it and one after it. A row about one server has no registry, and one that needs a cgroup has
no hosts. Rules of iptables lose packets; all other damage happens
in a proxy, a process of its own between the clients and the servers. The server records every execution before the handler does anything
else, and the client every outcome; then the two are joined: what succeeded was executed exactly once, what was not sent or was
refused never, what is unknown at most once, nothing twice, and every reply is that to its own request.

The load is open loop: calls become due at a fixed rate, whatever happened to earlier ones, and latency counts from then. Each
row first measures the capacity of its own processes, with the clients, method and message of the load: 256 calls at a
time, 4 for each client, without a pause. It then offers 60 % of that. The clients that make the load run on the same processors as the
servers, so the capacity includes their share. The row says which rate was reached before the fault, and how late calls began. Two rows
bound the rate: where every byte arrives by itself, and where each flipped bit costs a connection. Two have a fixed one: for it the
handler in the cgroup and the room for idempotency keys are made. The row in the cgroup and that of large streams, which concerns a
single connection, have one client process. Rows run one at a time; what other
programs on the machine used meanwhile is recorded, and a row in which that was more than 10 % is marked *not alone*. The column *load* says
what each row had. Rows marked *given, one process* are older: they ran at 1,000 calls/s from 64 callers in one process, a small part of the
capacity, and some of them side by side. They have not been renewed, and say nothing about a loaded system.

*Held*: everything in the column "has to hold" did. *Lost*: a bar was missed that depends on time. *Broken*: a promise was
missed that has nothing to do with time. ` + "`make faults`" + ` repeats it all; ` + "`--rows`" + ` chooses. [Ten million calls that are cancelled, and an hour of coming and going](soak.md), are a page of their own.

`

func (f *figure) word() string {
	switch {
	case f.Held:
		return "held"
	case f.Promise:
		return "broken"
	default:
		return "lost"
	}
}

// where describes the conditions of a row.
func (r *result) where() string {
	on := "on the loopback of one machine"
	if r.Hosts {
		on = "each process on a host of its own"
	}
	uses := ""
	for _, path := range slices.Sorted(maps.Keys(r.Uses)) {
		uses += ", " + path + " " + r.Uses[path]
	}
	meanwhile := ""
	if r.Others != nil {
		meanwhile = fmt.Sprintf(" and %.0f %% meanwhile", 100**r.Others)
	}
	if r.crowded() != "" {
		meanwhile += ", so that bars that depend on time say little"
	}
	return fmt.Sprintf("Phases of %g s, %s. %s, commit %s, %s%s; %s, %d processors (%s), of which others used %.0f %% before%s.\n",
		r.Seconds, on, r.Began.Format(time.DateTime), r.Commit, r.Go, uses, r.System, r.CPUs, r.CPU, 100*r.Busy, meanwhile)
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
