package report

import (
	"github.com/anser-rpc/anser/arena/internal/suite"
	"github.com/anser-rpc/anser/arena/result"
)

// trials says what the peer of a row reached with each of the connections that were tried, where its
// own were chosen by these trials.
func (c *comparison) trials(row *result.Row) []string {
	if !row.Best {
		return nil
	}
	var texts []string
	for i := range c.doc.Trials {
		t := &c.doc.Trials[i]
		if t.Peer != row.Peer || t.Workload != row.Workload || suite.Load(t.Shape) != suite.Load(row.Shape) {
			continue
		}
		text := connsLabel(&t.Shape) + ": "
		if t.Valid {
			text += thousands(t.CallsPerSecond, 0) + " calls/s"
		} else {
			text += "invalid"
		}
		texts = append(texts, text)
	}
	return texts
}
