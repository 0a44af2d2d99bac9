package main

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// keyRows are those in which calls that are not idempotent have idempotency keys.
func keyRows() []row {
	return []row{{
		name: "keys", fault: "connections are reset, while another client uses all the idempotency keys that the servers grant it", needs: hosts, run: keys,
		bar: "no call runs twice; 0 failed calls, all of which are idempotent or have keys; only the other client is refused",
	}}
}

// keys resets the connections of calls with keys, which are sent again, while a neighbour on a
// host of its own makes more calls with keys than the servers remember.
func keys(w *world) (*result, error) {
	w.o.Load.Rate = cmp.Or(w.o.Load.Rate, 100) // to measure the capacity would use up the room for keys
	// Bytes of a server: little, so that the neighbour is soon refused, but enough for the load.
	room := 512<<10 + int(w.o.phase().Seconds())*24<<10
	neighbours := filepath.Join(w.dir, "neighbour.calls")
	refused := make(chan error, 1)
	s := scenario{
		cluster: clusterOptions{servers: config{Keyed: room}, client: config{Keyed: room, Attempts: 5}},
		most:    100,
		files:   []string{neighbours},
	}
	s.fault = func(c *cluster) error {
		var servers []string
		for _, p := range c.servers {
			servers = append(servers, p.config.Listen)
		}
		n, err := w.start("client", "neighbour", config{Target: "tcp://" + strings.Join(servers, ","), Keyed: room, Timeout: c.o.Timeout})
		if err != nil {
			return err
		}
		go func() {
			refused <- n.ask("measure", measureOptions{Callers: 16, Seconds: 120, File: neighbours, Refused: true}, nil)
		}()
		return nil
	}
	s.heal = func(*cluster) error { return <-refused }
	o, p, err := w.through(s, weather{Cut: 4 << 10}, func(p passed) bool { return p.Cuts > 9 })
	if err != nil {
		return nil, err
	}
	others, err := ledger.ReadCalls(neighbours)
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.noFailures("failed calls", len(o.failed(nil)), o)
	r.fact("connections that were reset", float64(p.Cuts), "")
	r.fact("attempts for each call", float64(o.attempts)/float64(max(1, len(o.calls))), "")
	n := count(others, is(ledger.Refused))
	r.fact("calls of the neighbour", float64(len(others)), "")
	r.timed("of them refused", float64(n), "", "more than 0", n > 0)
	return r, nil
}
