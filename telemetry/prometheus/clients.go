package prometheus

import (
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// clientSource tells the counters of a client.
type clientSource struct{ *anser.Client }

func (c clientSource) tell(t tally, live bool) {
	st := c.Status()
	st.Target = telemetry.TargetName(st.Target)
	if live {
		tellClient(t, &st)
		tellRegistry(t, &st, time.Now())
	}
	for change := anser.InstanceEjected; change <= anser.BreakerClosed; change++ {
		t.add(clientHealth, float64(st.Health[change]), st.Target, word(change.String()))
	}
	var sent, won int64
	for i := range st.Backup {
		sent += st.Backup[i].Sent
		won += st.Backup[i].Won
	}
	t.add(clientBackups, float64(sent), st.Target)
	t.add(clientBackupsWon, float64(won), st.Target)
	t.add(clientGivenUp, float64(st.Failback.GivenUp+st.Failback.Full), st.Target)
	t.add(clientIgnored, float64(st.Ignored), st.Target)
}

// tellClient adds the gauges of a client and of its instances.
func tellClient(t tally, st *anser.ClientStatus) {
	t.add(clients, 1, st.Target)
	for _, state := range instanceStates {
		t.add(clientInstances, 0, st.Target, state)
	}
	open, halfOpen, held := 0, 0, 0
	var inFlight int64
	for i := range st.Instances {
		in := &st.Instances[i]
		t.add(clientInstances, 1, st.Target, instanceState(in))
		inFlight += in.Active
		if in.Held {
			held++
		}
		for _, b := range in.Breakers {
			switch b.State {
			case anser.StateOpen:
				open++
			case anser.StateHalfOpen:
				halfOpen++
			}
		}
	}
	t.add(clientHeld, float64(held), st.Target)
	t.add(clientInFlight, float64(inFlight), st.Target)
	t.add(clientBreakers, float64(open), st.Target, "open")
	t.add(clientBreakers, float64(halfOpen), st.Target, "half_open")
	t.add(clientLater, float64(st.Failback.Waiting), st.Target)
}

// The values of the label state of an instance.
const (
	outside   = "outside" // of the client's subset
	ejected   = "ejected"
	down      = "down"
	connected = "connected"
	idle      = "idle" // it has no connection, and is not known to be down
)

var instanceStates = []string{outside, ejected, down, connected, idle}

// instanceState returns the one state of an instance.
func instanceState(in *anser.InstanceStatus) string {
	switch {
	case in.Outside:
		return outside
	case in.Ejected != "":
		return ejected
	case in.Down:
		return down
	case in.Connected:
		return connected
	}
	return idle
}

// tellRegistry adds what a client knows of its registry and of traffic rules.
func tellRegistry(t tally, st *anser.ClientStatus, now time.Time) {
	if !st.Updated.IsZero() {
		t.least(clientUpdated, float64(st.Updated.UnixMilli())/1000, st.Target)
	}
	outage := 0.0
	if st.Trouble != nil {
		outage = max(now.Sub(st.Since).Seconds(), 0.001) // the clock may have been set back
	}
	t.most(clientOutage, outage, st.Target)
	t.add(clientSnapshot, flag(st.Snapshot), st.Target)
	if r := st.Rules; r != nil {
		t.add(clientRulesTrouble, flag(r.Trouble != nil || r.NotFollowed), st.Target)
		if !r.NotFollowed {
			t.least(clientRules, float64(r.Version), st.Target)
		}
	}
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
