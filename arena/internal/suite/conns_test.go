package suite_test

import (
	"slices"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/internal/suite"
)

// Each peer is asked for the connections that it supports, the fewest first, and for none that are
// the same as others.
func TestShapesToChooseFrom(t *testing.T) {
	supports := func(ways ...string) *peer.Peer {
		return &peer.Peer{Workloads: []string{peer.Say}, Conns: ways, Payloads: []int{581}}
	}
	every := supports(peer.Shared, peer.Pool, peer.Each, peer.Fresh)
	narrow := supports(peer.Each)
	narrow.MaxConns = 5
	fragile := supports(peer.Shared, peer.Pool, peer.Each)
	fragile.MaxCallsPerConn = 200
	for name, c := range map[string]struct {
		line suite.Line
		who  *peer.Peer
		want []int
	}{
		"all ways":                       {suite.Line{Callers: 100}, every, []int{2, 16, 0}},
		"a pool and each":                {suite.Line{Callers: 100}, supports(peer.Pool, peer.Each), []int{16, 0}},
		"shared only":                    {suite.Line{Callers: 100}, supports(peer.Shared), []int{2}},
		"shared and pool, one caller":    {suite.Line{Callers: 1}, supports(peer.Shared, peer.Pool), []int{2}},
		"each only":                      {suite.Line{Callers: 100}, supports(peer.Each), []int{0}},
		"fewer callers than the pool":    {suite.Line{Callers: 16}, every, []int{2, 0}},
		"one caller":                     {suite.Line{Callers: 1}, every, []int{0}},
		"more clients than shared":       {suite.Line{Callers: 100, Clients: 4, Servers: 2}, every, []int{8, 16, 0}},
		"more clients than the pool":     {suite.Line{Callers: 100, Clients: 20}, every, []int{20, 0}},
		"more servers than callers":      {suite.Line{Callers: 3, Servers: 4}, every, nil},
		"a server of few connections":    {suite.Line{Callers: 100}, narrow, nil},
		"a connection for each call":     {suite.Line{Callers: 100, Fresh: true}, every, []int{0}},
		"few calls on a connection":      {suite.Line{Callers: 1000}, fragile, []int{16, 0}},
		"as many calls as it carries":    {suite.Line{Callers: 400}, fragile, []int{2, 16, 0}},
		"a payload that nobody supports": {suite.Line{Callers: 100, Payload: 64}, every, nil},
	} {
		for _, conns := range []int{suite.BestConns, suite.AllConns} {
			c.line.Conns = conns
			shapes, refusal := c.line.Shapes(c.who)
			var got []int
			for _, s := range shapes {
				got = append(got, s.Conns)
			}
			if !slices.Equal(got, c.want) || (refusal != "") != (c.want == nil) {
				t.Errorf("%s: %v, %q, want %v", name, got, refusal, c.want)
			}
		}
	}
}

func TestParseConns(t *testing.T) {
	for text, want := range map[string]int{"best": suite.BestConns, "all": suite.AllConns, "usual": suite.UsualConns, "0": 0, "12": 12} {
		if got, err := suite.ParseConns(text); got != want || err != nil {
			t.Errorf("%s is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "most", "1.5"} {
		if _, err := suite.ParseConns(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
