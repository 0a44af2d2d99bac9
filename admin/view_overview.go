package admin

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

const shownFirst = 10 // rows of a list on the overview

func overview(d *Document, _ url.Values) []section {
	p := &d.Process
	return []section{
		tilesSection(d), serversSection(d), methodsSection(d, "server", shownFirst), edgesSection(d),
		callsSection("Latest failures", d.Failures, d.Time, shownFirst),
		{
			Title:   "Process",
			Columns: columns("Services", ">Heap", ">Goroutines", ">Processors", "Go", "Program", "ID"),
			Rows: [][]cell{{
				plain(cmp.Or(strings.Join(p.Services, ", "), "none announced")), plain(size(float64(p.Heap))), plain(fmt.Sprint(p.Goroutines)),
				plain(fmt.Sprint(p.Processors)), plain(p.Go), plain(p.Module),
				{Text: p.ID, Class: "trace"},
			}},
		},
	}
}

// tilesSection has the figures of the process as a whole.
func tilesSection(d *Document) section {
	tiles := []tile{}
	calls := func(title, p99 string, r *Recent) {
		if r == nil {
			r = new(Recent)
		}
		slow := tile{Title: p99, Text: "–", Class: "dim"}
		if r.Rate > 0 {
			slow = tile{p99, span(r.P99), "", r.P99.Seconds()}
		}
		tiles = append(tiles, tile{title, rate(r.Rate) + "/s", "", r.Rate}, slow)
	}
	failed, inFlight := 0.0, int64(0)
	for _, r := range []*Recent{d.Served, d.Called} {
		if r != nil {
			failed += r.Failed
		}
	}
	for i := range d.Servers {
		inFlight += d.Servers[i].InFlight
	}
	if len(d.Servers) > 0 {
		calls("Calls served", "p99 of served calls", d.Served)
	}
	if len(d.Clients) > 0 {
		calls("Calls made", "p99 of calls made", d.Called)
	}
	class := ""
	if failed > 0 {
		class = "bad"
	}
	p := &d.Process
	return section{Tiles: append(tiles, tile{"Failed", rate(failed) + "/s", class, failed}, tile{"Served in flight", fmt.Sprint(inFlight), "", float64(inFlight)},
		tile{"CPU", fmt.Sprintf("%.0f %%", 100*p.RecentCPU), "", p.RecentCPU}, tile{"Memory", size(float64(p.Memory)), "", float64(p.Memory)})}
}

func serversSection(d *Document) section {
	s := section{
		Title: "Servers", Empty: "The meter has no server: give anser.NewServer its option.",
		Columns: columns("Address", ">Connections", ">In flight", ">Streams", ">Waiting", ">Refused", ">Cancelled", ">Panics", ">Denied", ">Memory held", "Limits hit", "Closed because of the peer"),
	}
	for i := range d.Servers {
		v := &d.Servers[i]
		s.Rows = append(s.Rows, []cell{
			plain(cmp.Or(strings.Join(v.Addresses, ", "), "does not listen")), plain(fmt.Sprint(v.Conns)), plain(fmt.Sprint(v.InFlight)), plain(fmt.Sprint(v.Streams)),
			number(v.Waiting, "warn"), number(v.Refused, "warn"), number(v.Cancelled, ""), number(v.Panics, "bad"), number(v.Denied, "warn"), plain(size(float64(v.Memory))),
			counts(v.LimitsHit), counts(v.Closed),
		})
	}
	return s
}

// counts lists counters by name.
func counts(m map[string]int64) cell {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if m[name] != 0 {
			list = append(list, fmt.Sprintf("%s %d", name, m[name]))
		}
	}
	if len(list) == 0 {
		return dim("none")
	}
	return cell{Text: strings.Join(list, ", "), Class: "warn"}
}

// edgesSection lists what the process calls.
func edgesSection(d *Document) section {
	s := section{
		Title: "Calls to others", Empty: "The meter has no client: give anser.Dial its option.",
		Columns: columns("Target", ">Calls/s", ">Failed/s", ">p50", ">p99", ">Instances", ">Connected", ">Ejected or down", "Registry"),
	}
	for i := range d.Clients {
		c := &d.Clients[i]
		connected, out := 0, 0
		for j := range c.Instances {
			switch c.Instances[j].Status {
			case "connected":
				connected++
			case "ejected", "down":
				out++
			}
		}
		row := append([]cell{{Text: c.Target, Link: "clients"}}, recentCells(c.Recent)...)
		registry := registryCell(d, c)
		if c.Trouble != "" { // the page of registries has the error
			registry = cell{Text: "unreachable for " + span(d.Time.Sub(c.Since)), Link: "registries", Class: "bad", Hint: c.Trouble}
		}
		s.Rows = append(s.Rows, append(row, plain(fmt.Sprint(len(c.Instances))), plain(fmt.Sprint(connected)), number(out, "bad"), registry))
	}
	return s
}

// recentCells are rate, failures, p50 and p99.
func recentCells(r *Recent) []cell {
	if r == nil {
		return []cell{dim("…"), dim("…"), dim("…"), dim("…")}
	}
	failed := dim("0")
	if r.Failed > 0 {
		failed = bad(rate(r.Failed))
	}
	if r.Rate == 0 {
		return []cell{dim("0"), failed, dim("–"), dim("–")}
	}
	return []cell{plain(rate(r.Rate)), failed, plain(span(r.P50)), plain(span(r.P99))}
}

func registryCell(d *Document, c *Client) cell {
	switch {
	case c.Trouble != "":
		return bad("unreachable for " + span(d.Time.Sub(c.Since)) + ": " + c.Trouble)
	case c.Service == "":
		return dim("fixed instances")
	case !c.Saved.IsZero():
		return cell{Text: "list from disk, of " + c.Saved.Format("15:04:05"), Class: "warn"}
	case c.Updated.IsZero():
		return cell{Text: "no list yet", Class: "warn"}
	}
	return plain("list of " + since(d.Time, c.Updated))
}

// callsSection lists calls.
func callsSection(title string, list *Calls, now time.Time, most int) section {
	s := section{
		Title: title, Empty: "None.",
		Columns: columns("Ended", "Side", "Method", "Result", ">Duration", "Peer", "Identity", "Trace", "Message"),
	}
	for i, c := range list.Calls {
		if i == most {
			s.Note = fmt.Sprintf("%d more are on the page of their own.", len(list.Calls)-most)
			break
		}
		s.Rows = append(s.Rows, []cell{
			ended(now, c), plain(c.Side), plain(c.Method), result(c), plain(span(c.Duration)), plain(peer(c)), plain(c.Identity), traceCell(c), plain(explain(c)),
		})
	}
	if list.Skipped > 0 {
		s.Note += fmt.Sprintf(" %d were left out, as there were more than 500 in a second.", list.Skipped)
	}
	return s
}

// ended is the first cell of the row of a call, which it names.
func ended(now time.Time, c *telemetry.Call) cell {
	return cell{Text: since(now, c.Time), Key: fmt.Sprint(c.Time.UnixNano(), " ", c.Side, " ", c.Method, " ", c.Peer)}
}

func result(c *telemetry.Call) cell {
	if c.Code == anser.OK {
		return plain("ok")
	}
	return bad(fmt.Sprintf("%s, %s", c.Code, c.Outcome))
}

func peer(c *telemetry.Call) string {
	if c.Side == "client" && c.Peer == "" {
		return c.Target
	}
	return c.Peer
}

// explain says in words what a client tried, and why at that instance.
func explain(c *telemetry.Call) string {
	var parts []string
	if c.Message != "" {
		parts = append(parts, c.Message)
	}
	for i, a := range c.Attempts {
		parts = append(parts, fmt.Sprintf("attempt %d: %s (%s), %s after %s", i+1, cmp.Or(a.Address, "no instance"), a.Reason, a.Outcome, span(a.Duration)))
	}
	if pick := c.Pick.String(); pick != "" {
		parts = append(parts, "picked: "+pick)
	}
	return strings.Join(parts, "; ")
}
