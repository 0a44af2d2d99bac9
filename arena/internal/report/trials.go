package report

import (
	"github.com/anser-rpc/anser/arena/internal/suite"
	"github.com/anser-rpc/anser/arena/result"
)

// trials says what the peer of a row reached at most with each of the connections that were tried,
// where its own were chosen by these trials.
func (c *comparison) trials(row *result.Row) []string {
	if !row.Best {
		return nil
	}
	var order []string
	most := make(map[string]float64)
	failed := make(map[string]bool)
	for i := range c.doc.Trials {
		t := &c.doc.Trials[i]
		if t.Peer != row.Peer || t.Workload != row.Workload || suite.Load(t.Shape) != suite.Load(row.Shape) {
			continue
		}
		name := connsLabel(&t.Shape)
		if _, ok := most[name]; !ok {
			order = append(order, name)
		}
		most[name], failed[name] = max(most[name], t.CallsPerSecond), failed[name] || !t.Valid
	}
	for i, name := range order {
		if failed[name] {
			order[i] = name + ": invalid"
			continue
		}
		order[i] = name + ": " + thousands(most[name], 0) + " calls/s"
	}
	return order
}
