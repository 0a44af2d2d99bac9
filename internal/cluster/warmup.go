package cluster

import (
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// The initial weight of an instance, in percent, and the number of steps in which it grows.
const (
	firstWarmth = 10
	rampSteps   = 20
)

// warmLocked sets the warmth of instances that appeared or came back lately, and schedules a
// rebuild of the view while any of them is still warming up.
func (cl *Cluster[H, R]) warmLocked(now mono.Time) {
	d := cl.o.SlowStart
	growing := false
	for _, e := range cl.endpoints {
		warmth := 100
		if age := now.Sub(e.since); e.since != 0 && age < d {
			warmth = firstWarmth + int(float64(age)/float64(d)*(100-firstWarmth))
			growing = true
		}
		e.SetWarmth(warmth)
	}
	if growing {
		step := max(d/rampSteps, time.Millisecond)
		if cl.ramp == nil {
			cl.ramp = time.AfterFunc(step, cl.Rebuild)
		} else {
			cl.ramp.Reset(step)
		}
	}
}
