package doctor

import (
	"context"
	"net/http"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

// clock is the difference between another machine's clock and this one's.
type clock struct {
	known  bool
	ahead  time.Duration // of the other machine
	unsure time.Duration // the difference may be this much smaller or larger
}

// Differences of clocks that are reported.
const (
	skewed    = 2 * time.Second // tokens and certificates begin to fail at their edges
	farSkewed = time.Minute     // they fail
)

// clockOf reads the header Date of an answer, which has full seconds.
func clockOf(g *page) clock {
	date, err := http.ParseTime(g.header.Get("Date"))
	if err != nil {
		return clock{}
	}
	way := g.at.Sub(g.sent)
	there, here := date.Add(time.Second/2), g.sent.Add(way/2)
	return clock{known: true, ahead: there.Sub(here), unsure: time.Second/2 + way/2}
}

// readClock asks the port for its time by HTTP.
func (p *probe) readClock(ctx context.Context) clock {
	g, err := p.fetch(ctx, http1, http.MethodHead, "/", "", "")
	if err != nil {
		return clock{}
	}
	return clockOf(g)
}

// report adds a finding about the clock of the machine, if it is known.
func (c clock) report(f *findings, whose string) {
	if !c.known {
		return
	}
	off, direction := c.ahead, "ahead of"
	if off < 0 {
		off, direction = -off, "behind"
	}
	switch least := off - c.unsure; {
	case least > farSkewed:
		f.add("clock", Fail, "set both clocks by NTP: tokens, certificates and leases depend on them", "the clock of %s is %s %s this machine's", whose, span(off), direction)
	case least > skewed:
		f.add("clock", Warn, "set both clocks by NTP: tokens and certificates depend on them", "the clock of %s is %s %s this machine's", whose, table.Duration(off.Round(100*time.Millisecond)), direction)
	default:
		f.pass("clock", "the clock of %s agrees with this machine's, to %s", whose, table.Duration(c.unsure.Round(100*time.Millisecond)))
	}
}
