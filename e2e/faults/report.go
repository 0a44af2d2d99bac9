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

` + "`go run ./e2e/faults`" + ` writes this page. A registry (etcd), three servers and 64 clients run as
processes. The registry and each server have their own host, and the clients share one; a host is a
network namespace. Half of the calls are idempotent. Each row has three phases: before, during and
after the fault. A row about one server has no registry, and a row that needs a cgroup has no
hosts. iptables rules drop packets; all other damage is done by a proxy, a separate process between
the clients and the servers. The server records every execution before the handler does anything
else, and the client records every outcome. The ledger then compares the two records: a call that
succeeded was executed exactly once, a call that was not sent or was refused was not executed, a
call with an unknown outcome was executed at most once, no call was executed twice, and every reply
belongs to its request.

The load is open loop: calls become due at a fixed rate, regardless of earlier calls, and latency
is measured from the time at which the call was due. Each row first measures the capacity of its
own processes, with the clients, method and message of the load: 256 concurrent calls, 4 per
client, without pauses; then, for three seconds, a third of that rate with calls that become due
one by one, from which follows the rate at which the processors would have nothing left to do. It
offers 60 % of the lower one. Calls without pauses come in groups, so that a wake-up or a write
serves several, and 60 % of what they reach can be nearly all of the machine. The clients run on
the same processors as the servers, so the capacity includes their share. Each row reports the
rate reached before the fault, and the delay with which calls began. Two rows limit the rate: the
row in which every byte arrives separately, and the row in which each flipped bit costs a
connection. Two rows have a fixed rate, for which the handler in the cgroup and the limit of
idempotency keys are configured. The cgroup row and the row of large streams, which concerns a
single connection, have one client process. The latter measures the capacity while the streams are
sending. In the rows about gateways the clients call one or two gateways, each on its own host,
over Anser's protocol, in gRPC with the stock client and in JSON over HTTP, in turns. Rows run one
at a time. The CPU usage of other programs during a row is recorded, and a row in which it was
more than 10 % is marked *not alone*. The column *load* has the load of each row. Rows marked
*given, one process* are older: they ran at 1,000 calls/s from 64 callers in one process, a small
part of the capacity, and some of them concurrently. Their figures say nothing about a loaded
system.

Rows of Anser with phases of 20 or 60 s and a date before 27 November 2026 have 60 % of the first
figure alone, which is a higher load. Three of them were lost at it and have been played again with
the lower one: ` + "`delay`" + `, where the median latency at that load has the machine's queues in it, and
` + "`slow-reader`" + ` and ` + "`dials`" + `, in which calls were refused at the limit of 10,000 calls in flight
(` + "`anser.MaxInFlight`" + `). ` + "`reconnect`" + ` had been lost in the same way, and has held since: no call was
refused.

In ` + "`dials`" + ` no call failed, but the processors also make the 10,000 connections a second, as far as
they can: they made 4,812, and the p99 latency was 130 ms then. A bar of 3 times what it was
before needs a machine of its own for the other clients.

In ` + "`gateway-slow-upstream`" + ` all calls of the slow service ended by their deadline, one of them 0.10
s late, 11 ms more than is allowed for the pause of the machine.

An earlier form of ` + "`gateway-slow-upstream`" + ` was broken. The second client began to call with the
fault, on top of a load that left little of the machine: the median latency of the other service
doubled, and its p99 was 3.2 times what it was before. Now it calls all the time, and its service
becomes slow. With phases of 20 s the p99 of the other service was 0.8 and 1.3 times what it was
before. The row takes the p99 of each second, and the median of all seconds, so that one pause of
the machine does not decide. Of the calls in flight at the gateway it counts only those of the
slow service: of the 274 calls that the earlier form counted, most were calls of the other one. A
service can no longer take all places of a gateway (` + "`limits.service`" + `).

One of 6,002 calls of the slow service failed otherwise than by its deadline, with an error that
the row did not keep, as it does now. A call of ` + "`gateway-clients`" + ` ended with EOF, for a reason
that may be the same. Clients of HTTP keep connections on which nothing has come yet. When 256
were open (` + "`anser.MaxHandshakes`" + `), the gateway closed the oldest for a new one, and a request that
was on its way was lost. Such a connection now ends with 408, which says that the request did not
run, and a gateway has room for 4,096. With 256, on a machine that other programs used, clients of
gRPC could not connect for two minutes.

In ` + "`gateway-clients`" + ` 10,000 clients and the load have more calls in flight than the 10,000 that a
gateway runs by default, so the row gives it room for 30,002 (` + "`limits.calls`" + `). In ` + "`gateway-full`" + `
the gateway has room for 4,000 calls, which is more than the load has open when the machine
pauses; it had room for 200, and 256 concurrent calls measure the capacity.

In ` + "`large-streams`" + `, the single connection had once reached its limit of 10,000 open calls
(` + "`anser.MaxCalls`" + `) before the streams began: at 44,400 calls/s a pause of 0.23 s is enough. At
8,000 the client makes a second connection. So the row has at most 4,000 calls open; a call that
is due later waits, and counts from when it was due.

*Held*: all requirements were met. *Lost*: a requirement about time was missed. *Broken*: a promise
that does not depend on time was missed. ` + "`make faults`" + ` runs all rows again; ` + "`--rows`" + ` selects some.
[Ten million cancelled calls, and an hour of connecting and disconnecting](soak.md), have a
separate page.

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
		on = "each process on its own host"
	}
	uses := ""
	for _, path := range slices.Sorted(maps.Keys(r.Uses)) {
		uses += ", " + path + " " + r.Uses[path]
	}
	meanwhile := ""
	if r.Others != nil {
		meanwhile = fmt.Sprintf(" and %.0f %% during the row", 100**r.Others)
	}
	if r.crowded() != "" {
		meanwhile += ", so requirements about time say little"
	}
	return fmt.Sprintf("Phases of %g s, %s. %s, commit %s, %s%s; %s, %d processors (%s), %.0f %% used by other programs before%s.\n",
		r.Seconds, on, r.Began.Format(time.DateTime), r.Commit, r.Go, uses, r.System, r.CPUs, r.CPU, 100*r.Busy, meanwhile)
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
