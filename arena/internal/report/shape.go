package report

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/anser-rpc/anser/arena/result"
)

// standardPayload is the default of --payload. Labels omit it.
const standardPayload = 581

// kinds are the groups in which shapes are offered, in this order.
var kinds = []string{
	"Each peer's best connections",
	"Shared connections",
	"A connection for each caller",
	"A connection for each call",
	"Calls in flight",
	"Other payloads",
	"Slow handlers",
	"Open loop",
	"Several processes or hosts",
}

// The kinds in which nothing but callers and connections is chosen.
const (
	kindBest = iota
	kindShared
	kindEach
	kindFresh
)

// kind returns the index in kinds. The thing that is unusual about a shape decides.
func kind(s *result.Shape) int {
	switch {
	case s.Hosts > 1 || s.Servers > 1 || s.Clients > 1:
		return 8
	case s.Rate > 0 || s.Share > 0:
		return 7
	case s.SleepUS > 0 || s.WorkUS > 0:
		return 6
	case s.Payload > 0 && s.Payload != standardPayload:
		return 5
	case s.Window > 1:
		return 4
	case s.Fresh:
		return kindFresh
	case s.Conns == 0:
		return kindEach
	case s.Conns == bestConns:
		return kindBest
	}
	return kindShared
}

// shapeKey names a shape in an address: c1000-n2. Two shapes that are compared with each other
// have the same one. Seconds are in it where the document has several durations.
func shapeKey(s *result.Shape, seconds bool) string {
	return "c" + strconv.Itoa(s.Callers) + "-" + seriesKey(s, seconds)
}

// seriesKey is the key without the callers: shapes that have it in common make a curve over
// callers.
func seriesKey(s *result.Shape, seconds bool) string {
	var parts []string
	add := func(when bool, format string, value any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add(s.Fresh, "%s", "fresh")
	add(!s.Fresh && s.Conns == 0, "%s", "each")
	add(!s.Fresh && s.Conns == bestConns, "%s", "best")
	add(!s.Fresh && s.Conns > 0, "n%d", s.Conns)
	add(s.Window > 1, "w%d", s.Window)
	add(s.Share > 0, "share%s", strconv.FormatFloat(s.Share, 'f', -1, 64))
	add(s.Rate > 0, "r%s", strconv.FormatFloat(s.Rate, 'f', -1, 64))
	add(s.Payload > 0 && s.Payload != standardPayload, "p%d", s.Payload)
	add(s.SleepUS > 0, "sleep%d", s.SleepUS)
	add(s.WorkUS > 0, "work%d", s.WorkUS)
	add(s.Servers > 1, "servers%d", s.Servers)
	add(s.Clients > 1, "clients%d", s.Clients)
	add(s.Hosts > 1, "hosts%d", s.Hosts)
	add(s.Calls > 0, "calls%d", s.Calls)
	add(seconds && s.Calls == 0, "%ss", strconv.FormatFloat(s.Seconds, 'f', -1, 64))
	return strings.Join(parts, "-")
}

// shapeLabel says a shape in words: 1,000 callers, 2 connections.
func shapeLabel(s *result.Shape, seconds bool) string {
	return counted(s.Callers, "caller") + ", " + seriesLabel(s, seconds)
}

// seriesLabel says in words what a curve over callers has in common.
func seriesLabel(s *result.Shape, seconds bool) string {
	var parts []string
	parts = append(parts, connsLabel(s))
	add := func(when bool, text string) {
		if when {
			parts = append(parts, text)
		}
	}
	add(s.Window > 1, thousands(float64(s.Window), 0)+" calls in flight for each")
	add(s.Share > 0, thousands(100*s.Share, 0)+" % of its own peak offered")
	add(s.Rate > 0, thousands(s.Rate, 0)+" calls/s offered")
	add(s.Payload > 0 && s.Payload != standardPayload, sizeLabel(s.Payload)+" payload")
	add(s.SleepUS > 0, "handler sleeps "+durationLabel(float64(s.SleepUS)))
	add(s.WorkUS > 0, "handler works "+durationLabel(float64(s.WorkUS)))
	add(s.Servers > 1, counted(s.Servers, "server"))
	add(s.Clients > 1, counted(s.Clients, "client process"))
	add(s.Hosts > 1, counted(s.Hosts, "host"))
	add(s.Calls > 0, counted(s.Calls, "call"))
	add(seconds && s.Calls == 0, strconv.FormatFloat(s.Seconds, 'f', -1, 64)+" s")
	return strings.Join(parts, ", ")
}

// connsLabel says the connections of a shape in words.
func connsLabel(s *result.Shape) string {
	switch {
	case s.Fresh:
		return "a connection for each call"
	case s.Conns == 0:
		return "a connection for each caller"
	case s.Conns == bestConns:
		return "each with its best connections"
	}
	return counted(s.Conns, "connection")
}

// connsWord is connsLabel where there is room for a word.
func connsWord(s *result.Shape) string {
	switch {
	case s.Fresh:
		return "fresh"
	case s.Conns == 0:
		return "each"
	}
	return thousands(float64(s.Conns), 0)
}

// orderShapes orders by kind, and then by what a person would count up.
func orderShapes(a, b *result.Shape) int {
	return cmp.Or(
		cmp.Compare(kind(a), kind(b)),
		cmp.Compare(a.Hosts, b.Hosts),
		cmp.Compare(a.Servers, b.Servers),
		cmp.Compare(a.Clients, b.Clients),
		cmp.Compare(a.Share, b.Share),
		cmp.Compare(a.Rate, b.Rate),
		cmp.Compare(a.SleepUS, b.SleepUS),
		cmp.Compare(a.WorkUS, b.WorkUS),
		cmp.Compare(a.Payload, b.Payload),
		cmp.Compare(a.Window, b.Window),
		cmp.Compare(a.Calls, b.Calls),
		cmp.Compare(a.Seconds, b.Seconds),
		cmp.Compare(a.Conns, b.Conns),
		cmp.Compare(a.Callers, b.Callers),
	)
}

// plain says that only callers and connections are chosen.
func plain(s *result.Shape) bool { return kind(s) <= kindFresh && s.Calls == 0 }
