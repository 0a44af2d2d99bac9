package anser

import (
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// warmLocked sets the warmth of instances that appeared or came back lately, and schedules a
// rebuild of the view while any of them is still warming up.
func (cl *cluster) warmLocked(now mono.Time) {
	d := cl.client.o.slowStart
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
			cl.ramp = time.AfterFunc(step, cl.rebuild)
		} else {
			cl.ramp.Reset(step)
		}
	}
}
