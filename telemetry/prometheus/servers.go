package prometheus

import (
	"strings"

	"github.com/anser-rpc/anser"
)

// serverSource tells the counters of a server.
type serverSource struct{ *anser.Server }

// sources makes sources of servers or clients.
func sources[S source, T any](list []T, of func(T) S) []S {
	out := make([]S, len(list))
	for i, x := range list {
		out[i] = of(x)
	}
	return out
}

// priorities are the values of the label priority.
var priorities = [anser.Critical + 1]string{anser.Sheddable: "sheddable", anser.Low: "low", anser.Normal: "normal", anser.Critical: "critical"}

// word returns words as one value of a label: "instance ejected" is "instance_ejected".
func word(words string) string { return strings.ReplaceAll(words, " ", "_") }

func (s serverSource) tell(t tally, live bool) {
	st := s.Stats()
	if live {
		tellServer(t, &st)
	}
	t.add(serverAccepted, float64(st.Accepted))
	t.add(serverConnsRefused, float64(st.HandshakeFailed), "handshake")
	t.add(serverConnsRefused, float64(st.WrongAddress), "address")
	t.add(serverCancelled, float64(st.Cancelled))
	t.add(serverPanics, float64(st.Panics))
	t.add(serverHandoffs, float64(st.Handoffs))
	t.add(serverDenied, float64(st.Denied))
	t.add(serverCutOff, float64(st.CutOff))
	for reason, n := range st.Closed {
		t.add(serverConnsClosed, float64(n), reason)
	}
	for limit, n := range st.LimitsHit {
		t.add(serverLimitHits, float64(n), word(limit))
	}
	for p, n := range st.Limits.Shed {
		t.add(serverShed, float64(n), priorities[p])
	}
	for reason, n := range st.Unauthenticated {
		t.add(serverStrangers, float64(n), word(reason))
	}
	for alias, n := range st.DeprecatedAliases {
		t.add(serverAliases, float64(n), alias)
	}
}

// tellServer adds the gauges of a server.
func tellServer(t tally, st *anser.ServerStats) {
	t.add(servers, 1)
	t.add(serverConns, float64(st.Conns))
	t.add(serverInFlight, float64(st.InFlight))
	t.add(serverStreams, float64(st.Streams))
	t.add(serverMemory, float64(st.Memory))
	t.add(serverKeys, float64(st.Keys.Known))
	t.add(serverKeyBytes, float64(st.Keys.Bytes))
	tellLimit(t, "", &st.Limits)
	for method := range st.Methods {
		m := st.Methods[method]
		tellLimit(t, method, &m.Limits)
	}
}

// tellLimit adds the gauges of an adaptive limit, if there is one.
func tellLimit(t tally, method string, l *anser.LimitStats) {
	if l.Limit == 0 {
		return
	}
	t.add(serverLimit, float64(l.Limit), method)
	t.add(serverRunning, float64(l.Running), method)
	t.add(serverWaiting, float64(l.Waiting), method)
}
